"""The kernel map of random attention: draw by draw, exact expectations, and the law of its collapse.

Statistical tests hold within 4 standard errors, which a right program fails with probability 6e-5 a number, at fixed
seeds; each rejects a prediction that is a little wrong.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import kernelprop as kp
from kernelprop.attention.random_softmax import random_softmax, shaped_attention
from kernelprop.layers import random_attention
from kernelprop.split_kernel import SplitKernel, split
from tests.layers.random_cases import BIAS, KERNELS, LAYERS, PLAIN, T, forward, matrices

LIMIT = 4.0  # standard errors


@pytest.mark.parametrize("name", LAYERS)
def test_the_kernel_map_is_the_mean_over_its_draws(name):
    drawn = matrices(LAYERS[name])
    expected = (drawn @ KERNELS[:, None] @ np.swapaxes(drawn, -1, -2)).mean(1)
    for result, right, kernel in zip(forward(LAYERS[name]), expected, KERNELS, strict=True):
        np.testing.assert_allclose(result, right, rtol=1e-11, atol=1e-13 * np.abs(kernel).max())


@pytest.mark.parametrize("entries", [1, 2 * T * T])  # One at a time; two, which don't divide three.
def test_the_result_does_not_depend_on_how_draws_are_batched(entries):
    with jax.enable_x64(True):
        state, key = split(jnp.asarray(PLAIN)), jax.random.key(5)
        batched = np.asarray(random_attention.forward(LAYERS["plain"], state, key, batch_entries=entries).join())
    np.testing.assert_allclose(batched, forward(LAYERS["plain"])[0], rtol=1e-12)


@pytest.mark.parametrize("causal", [False, True])
def test_without_logits_attention_is_uniform(causal):
    layer = random_softmax(T, tau=0.0, causal=causal, draws=3)
    for result, kernel in zip(forward(layer), KERNELS, strict=True):
        expected = kp.uniform(T, causal=causal).conjugate(kernel)
        np.testing.assert_allclose(result, expected, rtol=1e-13, atol=1e-14 * np.abs(kernel).max())


def test_shaped_attention_at_small_logits_is_the_identity():
    layer = shaped_attention(T, draws=3, tau=1e-12, bias=BIAS, causal=True)
    np.testing.assert_allclose(forward(layer), KERNELS, rtol=1e-8, atol=1e-8)


def test_a_key_is_wanted_where_there_is_something_to_draw():
    with pytest.raises(ValueError, match="a key is wanted"):
        random_attention.forward(LAYERS["plain"], split(jnp.asarray(PLAIN, jnp.float32)), None)


# Exact expectations.


def two_tokens(strength):
    """``Σ'`` of two tokens of correlation 1/2, by quadrature: two logits of a row differ by variance 1.

    Returns the diagonal and the off-diagonal entry, and of one head's diagonal the standard deviation and kurtosis.
    """
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    weights = np.outer(weights, weights) / (2 * np.pi)
    x = nodes[:, None] + 0 * nodes
    y = 0.5 * x + np.sqrt(0.75) * nodes
    p, q = (1 / (1 + np.exp(-strength * z)) for z in (x, y))
    diagonal = p**2 + (1 - p) ** 2 + p * (1 - p)
    across = p * q + (1 - p) * (1 - q) + 0.5 * (p * (1 - q) + q * (1 - p))
    mean = np.array([(weights * z).sum() for z in (diagonal, across)])
    second, fourth = ((weights * (diagonal - mean[0]) ** power).sum() for power in (2, 4))
    return mean, np.sqrt(second), fourth / second**2


def test_two_tokens_and_infinitely_many_heads():
    expected, spread, _ = two_tokens(1.0)
    np.testing.assert_allclose(expected, [0.7934, 0.7714], atol=5e-5)
    assert spread == pytest.approx(0.0463, abs=5e-5)
    model = kp.Transformer(random_softmax(2, draws=20_000))
    evolution = kp.propagate(model, kp.kernels.equicorrelated(2, 0.5), keep="last")
    kernel, error = evolution.kernels[-1][0], evolution.kernels_stderr[-1][0]
    assert (error < 2e-4).all()
    assert (np.abs(kernel - expected) < LIMIT * error).all()
    wrong, *_ = two_tokens(1.02)
    assert np.abs(wrong / expected - 1).max() < 0.01
    assert not (np.abs(kernel - wrong) < LIMIT * error).all()


def test_one_head_is_a_random_kernel_with_a_spread():
    networks = 5000
    model = kp.Transformer(random_softmax(2, heads=1, chains=networks, seed=1))
    evolution = kp.propagate(model, kp.kernels.equicorrelated(2, 0.5), keep="last")
    expected, spread, kurtosis = two_tokens(1.0)
    measured = evolution.kernels_stderr[-1][0, 0] * np.sqrt(networks)
    error = spread * np.sqrt((kurtosis - 1) / (4 * networks))
    assert abs(measured - spread) < LIMIT * error
    assert abs(measured - 1.1 * spread) > LIMIT * error
    assert abs(evolution.kernels[-1][0, 0] - expected[0]) < LIMIT * spread / np.sqrt(networks)


@pytest.mark.parametrize(
    ("length", "strength", "expected"),
    [
        (16, 1, 0.13245222),
        (64, 1, 0.03880424),
        (64, 2, 0.16073511),
        pytest.param(512, 2, 0.04638640, marks=pytest.mark.slow),
        pytest.param(512, 4, 0.31226489, marks=pytest.mark.slow),
    ],
)
def test_uncorrelated_tokens(length, strength, expected):
    """``Σ'_ii = E Σ_j P_ij²``; the positions are independent, and so are their errors."""
    draws, dtype = (40, "float32") if length == 512 else (160, "float64")
    model = kp.Transformer(random_softmax(length, tau=strength, draws=draws))
    evolution = kp.propagate(model, kp.kernels.identity(length), keep="last", dtype=dtype)
    mean = evolution.diagonal[-1].mean()
    error = np.sqrt(np.sum(evolution.diagonal_stderr[-1] ** 2)) / length
    assert error < 0.003 * expected
    assert abs(mean - expected) < LIMIT * error
    assert abs(mean - 1.024 * expected) > LIMIT * error


# Collapse.


@jax.jit
def _centred_after(layer, gap, keys):
    """The trace of the centred part behind a kernel whose correlations are all ``1 − gap``, exactly so."""
    length = layer.length
    kernel = SplitKernel(1 - gap + gap / length, jnp.zeros(length), gap * (jnp.eye(length) - 1 / length))
    return jax.vmap(lambda key: jnp.trace(random_attention.forward(layer, kernel, key).rest))(keys)


@pytest.mark.parametrize("gap", [1e-3, 1e-9, 1e-30])
def test_near_collapse_the_gap_goes_to_its_cube(gap):
    """``Σ'_ii − Σ'_ij = s² ε³ (T−1)/T²``: no cancellation eats it, however small it is."""
    length, tau = 16, 1.5
    with jax.enable_x64(True):
        keys = jax.random.split(jax.random.key(1), 8)
        after = np.asarray(_centred_after(random_softmax(length, tau=tau, draws=500), jnp.asarray(gap), keys))
    ratio = after / (tau**2 * gap**3 * (length - 1) ** 2 / length**2)
    error = ratio.std(ddof=1) / np.sqrt(len(ratio))
    allowance = 5 * gap  # the next order
    assert error < 0.005
    assert abs(ratio.mean() - 1) < LIMIT * error + allowance
    assert abs(ratio.mean() - length / (length - 1)) > LIMIT * error + allowance


def test_collapse_is_followed_to_the_flagged_floor():
    """At correlation 1 − .02 a layer makes 4.77e-7, and each one cubes what it gets, down to nothing."""
    length, start = 16, 0.02
    model = kp.Transformer(random_softmax(length, draws=500), depth=5)
    evolution = kp.propagate(model, kp.kernels.equicorrelated(length, 1 - start))
    gap = evolution.rank_residual**2 * evolution.diagonal.mean(-1) * length / (length - 1)
    assert gap[1] == pytest.approx(4.77e-7, rel=5e-3)
    law = gap[:3] ** 3 * (length - 1) / length**2
    # What the depth before is off by counts three times; the first step has a next order.
    relative = 2 * evolution.rank_residual_stderr[:4] / evolution.rank_residual[:4]
    error = LIMIT * np.hypot(relative[1:], 3 * relative[:3]) + [0.03, 0, 0]
    assert (error < 0.1).all()
    assert (np.abs(gap[1:4] / law - 1) < error).all()
    assert gap[3] < 1e-60
    assert not evolution.below_floor[:3].any()
    assert evolution.below_floor[3:].all()
    assert not evolution.undefined.any()
    for name in ("kernels", "kernels_stderr", "mean_correlation", "mean_correlation_stderr", "rank_residual_stderr"):
        assert np.isfinite(getattr(evolution, name)).all(), name
    np.testing.assert_allclose(evolution.mean_correlation[3:], 1, atol=1e-14)


def test_a_centred_part_made_of_rounding_is_flagged():
    """Behind an MLP the whole kernel is rounded, and what is left of a collapsed one is no kernel."""
    model = kp.Transformer(random_softmax(T, draws=8), depth=4, mlp=kp.MLP("relu", gain_in=np.sqrt(2)))
    evolution = kp.propagate(model, kp.kernels.equicorrelated(T, 0.99))
    assert evolution.below_floor.tolist() == [False, False, True, True, True]
    assert np.isfinite(evolution.kernels).all()
