"""Random attention against its algebra draw by draw, exact expectations, and the law of its collapse.

Statistical tests hold within 4 standard errors, which a right program fails with probability 6e-5 a number, at fixed
seeds; each rejects a prediction that is a little wrong.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import kernelprop as kp
from kernelprop import infinite
from kernelprop.attention.biases import softmax_attention
from kernelprop.attention.masked_bias import MaskedBias, masked_softmax
from kernelprop.attention.random_softmax import random_softmax, rotary_frequencies, shaped_attention
from kernelprop.layers import random_attention, random_logits
from kernelprop.split_kernel import SplitKernel, split

LIMIT = 4.0  # standard errors


def positive(length, seed=0):
    root = np.random.default_rng(seed).normal(size=(length, length + 2))
    return root @ root.T / length


def collapsed(length, gap):
    """All correlations ``1 − gap``, the centred part not rounded by the common one."""
    centre = jnp.eye(length) - 1 / length
    return SplitKernel(jnp.asarray(1 - gap + gap / length), jnp.zeros(length), gap * centre)


def forward(layer, kernel, key=None, **options):
    with jax.enable_x64(True):
        kernel = split(jnp.asarray(kernel)) if isinstance(kernel, np.ndarray) else kernel
        return random_attention.forward(layer, kernel, jax.random.key(0) if key is None else key, **options)


def whole(kernel):
    with jax.enable_x64(True):
        return np.asarray(kernel.join())


T = 5
NEAR = 0.9 + 0.1 * positive(T) / positive(T).max()
FAR = positive(T) * np.outer([1, 30, 2, 1, 7], [1, 30, 2, 1, 7])
ZERO = positive(T) * np.outer([1, 1, 0, 1, 1], [1, 1, 0, 1, 1])
BIAS = np.random.default_rng(3).normal(size=(T, T))
LAYERS = {
    "plain": random_softmax(T, draws=3),
    "causal": random_softmax(T, draws=3, causal=True, tau=1.5),
    "padding": random_softmax(T, draws=3, mask=[True, True, False, True, True]),
    "bias": random_softmax(T, draws=3, bias=BIAS, query_gain=2.0, key_gain=0.7),
    "biases": random_softmax(T, heads=2, bias=np.stack([BIAS, BIAS.T])),
    "rescaled": random_softmax(T, draws=3, rescale=[1, 2, 0.5, 3, 1.0], causal=True),
    "rotary": random_softmax(T, draws=3, rotary=rotary_frequencies(6), tau=2.0),
    "peaked": random_softmax(T, draws=3, tau=80.0),
    "shaped": shaped_attention(T, 0.9, 0.7, 0.4, draws=3, causal=True, rescale=[1, 2, 0.5, 3, 1.0]),
    "shaped far": shaped_attention(T, 1.0, 1.0, 1.0, draws=3, bias=BIAS),
}


def matrices(layer, kernel, key):
    """The matrices that a layer's draws stand for, from their definition."""
    root = random_logits.factor(kernel)
    base = np.broadcast_to(layer.bias, (layer.bias_count, *layer.bias.shape[-2:]))
    rest = np.broadcast_to(masked_softmax(MaskedBias(base, layer.mask)), (layer.bias_count, T, T))
    scale = np.ones(T) if layer.rescale is None else layer.rescale
    for number in range(layer.draws):
        head = number % layer.bias_count
        drawn = np.add(*(np.asarray(x) for x in random_logits.logits(layer, root, jax.random.fold_in(key, number))))
        softmax = masked_softmax(MaskedBias(base[head] + drawn, np.broadcast_to(layer.mask, (T, T))))
        mixed = layer.softmax_weight * softmax - layer.centre_weight * rest[head]
        yield layer.identity_weight * np.eye(T) + scale[:, None] * mixed


@pytest.mark.parametrize("name", LAYERS)
def test_the_kernel_map_is_the_mean_over_its_draws(name):
    layer = LAYERS[name]
    with jax.enable_x64(True):
        key = jax.random.key(5)
        for kernel in (positive(T), NEAR, FAR, ZERO):
            state = split(jnp.asarray(kernel))
            expected = np.mean([a @ kernel @ a.T for a in matrices(layer, state, key)], axis=0)
            result = whole(random_attention.forward(layer, state, key))
            np.testing.assert_allclose(result, expected, rtol=1e-11, atol=1e-13 * np.abs(kernel).max())


def test_a_sampled_matrix_is_the_one_that_the_map_uses():
    layer = LAYERS["causal"]
    with jax.enable_x64(True):
        state, key = split(jnp.asarray(positive(T))), jax.random.key(5)
        first = next(iter(matrices(layer, state, key)))
        sampled = random_logits.sample_attention(layer, state, jax.random.fold_in(key, 0))
        np.testing.assert_allclose(sampled, first, atol=1e-14)
    np.testing.assert_array_equal(np.triu(first, 1), 0)


# A case of padding: a masked key takes no part, whatever stands there.
def test_a_masked_key_gets_no_weight():
    with jax.enable_x64(True):
        sampled = random_logits.sample_attention(LAYERS["padding"], split(jnp.asarray(FAR)), jax.random.key(0))
    np.testing.assert_array_equal(sampled[:, 2], 0)
    np.testing.assert_allclose(sampled.sum(1), 1)


@pytest.mark.parametrize("name", ["plain", "biases", "rotary"])
def test_the_result_does_not_depend_on_how_draws_are_batched(name):
    layer = LAYERS[name]
    whole_batch = whole(forward(layer, positive(T)))
    for entries in (1, 2 * T * T):  # One at a time; two, which don't divide three.
        np.testing.assert_allclose(whole(forward(layer, positive(T), batch_entries=entries)), whole_batch, rtol=1e-12)


@pytest.mark.parametrize("causal", [False, True])
def test_without_logits_attention_is_uniform(causal):
    kernel = positive(T)
    expected = kp.uniform(T, causal=causal).conjugate(kernel)
    layers = [random_softmax(T, tau=0.0, causal=causal), random_softmax(T, causal=causal, logit_scale="linear")]
    for layer in layers:
        np.testing.assert_allclose(whole(forward(layer, kernel)), expected, rtol=1e-13, atol=1e-15)


def test_a_key_is_wanted_where_there_is_something_to_draw():
    with pytest.raises(ValueError, match="a key is wanted"):
        random_attention.forward(LAYERS["plain"], split(jnp.asarray(positive(T), jnp.float32)), None)


def test_shaped_attention_at_small_logits_is_the_identity():
    layer = shaped_attention(T, draws=3, tau=1e-9, bias=BIAS, causal=True)
    np.testing.assert_allclose(whole(forward(layer, positive(T))), positive(T), rtol=1e-8)


# Covariances of the logits.


def logit_samples(layer, kernel, draws):
    with jax.enable_x64(True):
        root = random_logits.factor(split(jnp.asarray(kernel)))
        keys = jax.random.split(jax.random.key(2), draws)
        common, apart = jax.jit(jax.vmap(lambda key: random_logits.logits(layer, root, key)))(keys)
        return np.asarray(common + apart).reshape(draws, -1)


def largest_error(samples, covariance):
    """In standard errors, of Gaussian samples' second moments."""
    variance = np.diag(covariance)
    error = np.sqrt((np.outer(variance, variance) + covariance**2) / len(samples))
    measured = samples.T @ samples / len(samples)
    return np.max(np.abs(measured - covariance) / np.maximum(error, 1e-12))


def test_logits_have_the_covariance_of_queries_times_keys():
    """Up to the part that a whole row shares: the key's side is centred."""
    kernel, layer = NEAR, random_softmax(T, tau=0.5, query_gain=3.0)
    samples = logit_samples(layer, kernel, 20_000)
    centre = np.eye(T) - 1 / T
    covariance = 2.25 * np.kron(kernel, centre @ kernel @ centre)
    assert largest_error(samples, covariance) < 5  # of 325 numbers
    assert largest_error(samples, 2.25 * np.kron(np.diag(np.diag(kernel)), centre @ kernel @ centre)) > 5
    assert largest_error(samples, 1.08 * covariance) > 5


# Case 48: queries and keys of one draw would have logits of mean q on the diagonal.
def test_rotary_logits_have_their_covariance():
    kernel, frequencies = positive(4, 1), np.array([1.0, 0.3, 0.05])
    samples = logit_samples(random_softmax(4, rotary=frequencies), kernel, 20_000)
    assert np.abs(samples.mean(0) / samples.std(0)).max() < 5 / np.sqrt(len(samples))
    lag = (np.arange(4)[:, None] - np.arange(4)).reshape(-1)
    angle = np.cos(np.multiply.outer(frequencies, lag[:, None] - lag)).mean(0)
    assert largest_error(samples, np.kron(kernel, kernel) * angle) < 5
    assert largest_error(samples, np.kron(kernel, kernel)) > 10
    assert (
        largest_error(
            samples, np.kron(kernel, kernel) * np.cos(np.multiply.outer(frequencies, lag[:, None] + lag)).mean(0)
        )
        > 10
    )


# Exact expectations.


def two_tokens(strength):
    """``Σ'`` of two tokens of correlation 1/2 by quadrature: the difference of two logits has variance 1."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    weights = np.outer(weights, weights) / (2 * np.pi)
    x = nodes[:, None] + 0 * nodes
    y = 0.5 * x + np.sqrt(0.75) * nodes
    p, q = (1 / (1 + np.exp(-strength * z)) for z in (x, y))
    diagonal = p**2 + (1 - p) ** 2 + p * (1 - p)
    across = p * q + (1 - p) * (1 - q) + 0.5 * (p * (1 - q) + q * (1 - p))
    mean = np.array([(weights * z).sum() for z in (diagonal, across)])
    return mean, np.sqrt((weights * (diagonal - mean[0]) ** 2).sum())


def test_two_tokens_and_infinitely_many_heads():
    expected, spread = two_tokens(1.0)
    np.testing.assert_allclose(expected, [0.7934, 0.7715], atol=5e-5)
    assert spread == pytest.approx(0.0463, abs=5e-5)
    model = kp.Transformer(random_softmax(2, draws=20_000))
    evolution = kp.propagate(model, kp.kernels.equicorrelated(2, 0.5), keep="last")
    kernel, error = evolution.kernels[-1][0], evolution.kernels_stderr[-1][0]
    assert (error < 2e-4).all()
    assert (np.abs(kernel - expected) < LIMIT * error).all()
    wrong, _ = two_tokens(1.02)
    assert np.abs(wrong / expected - 1).max() < 0.01
    assert not (np.abs(kernel - wrong) < LIMIT * error).all()


def test_one_head_is_a_random_kernel_with_a_spread():
    networks = 2000
    model = kp.Transformer(random_softmax(2, heads=1, chains=networks))
    evolution = kp.propagate(model, kp.kernels.equicorrelated(2, 0.5), keep="last")
    expected, spread = two_tokens(1.0)
    measured = evolution.kernels_stderr[-1][0, 0] * np.sqrt(networks)
    # The spread's own error, of a distribution with thinner tails than the Gaussian.
    assert measured == pytest.approx(spread, rel=LIMIT / np.sqrt(2 * networks))
    assert measured != pytest.approx(spread / np.sqrt(1.3), rel=LIMIT / np.sqrt(2 * networks))
    assert abs(evolution.kernels[-1][0, 0] - expected[0]) < LIMIT * spread / np.sqrt(networks)
    assert f"{networks} random networks of 1 heads" in evolution.notes[0]


@pytest.mark.parametrize(
    ("length", "strength", "expected", "draws"),
    [
        (16, 1, 0.13245222, 160),
        (64, 1, 0.03880424, 40),
        (64, 2, 0.16073511, 160),
        (512, 2, 0.04638640, 40),
        (512, 4, 0.31226489, 20),
    ],
)
def test_uncorrelated_tokens(length, strength, expected, draws):
    """``Σ'_ii = E Σ_j P_ij²``; the positions are independent, and so are their errors."""
    dtype = "float32" if length > 100 else "float64"
    model = kp.Transformer(random_softmax(length, tau=strength, draws=draws))
    evolution = kp.propagate(model, kp.kernels.identity(length), keep="last", dtype=dtype)
    mean = evolution.diagonal[-1].mean()
    error = np.sqrt(np.sum(evolution.diagonal_stderr[-1] ** 2)) / length
    assert error < 0.003 * expected
    assert abs(mean - expected) < LIMIT * error
    assert abs(mean - 1.024 * expected) > LIMIT * error


# Collapse.


@pytest.mark.parametrize("gap", [1e-3, 1e-9, 1e-30])
def test_near_collapse_the_gap_goes_to_its_cube(gap):
    """``Σ'_ii − Σ'_ij = s² ε³ (T−1)/T²``: no cancellation eats it, however small it is."""
    length, tau = 16, 1.5
    with jax.enable_x64(True):
        layer = random_softmax(length, tau=tau, draws=500)
        keys = jax.random.split(jax.random.key(1), 8)
        out = jax.jit(jax.vmap(lambda k: random_attention.forward(layer, collapsed(length, gap), k).rest))(keys)
        after = np.trace(np.asarray(out), axis1=-2, axis2=-1) / (length - 1)
    ratio = after / (tau**2 * gap**3 * (length - 1) / length**2)
    error = ratio.std(ddof=1) / np.sqrt(len(ratio))
    allowance = 5 * gap  # the next order
    assert error < 0.005
    assert abs(ratio.mean() - 1) < LIMIT * error + allowance
    assert abs(ratio.mean() - length / (length - 1)) > LIMIT * error + allowance


def test_collapse_is_followed_to_the_flagged_floor():
    """At correlation 1 − .02 a layer makes 4.77e-7, and each one cubes what it gets, down to nothing."""
    length, start = 16, 0.02
    model = kp.Transformer(random_softmax(length, draws=500), depth=100)
    evolution = kp.propagate(model, kp.kernels.equicorrelated(length, 1 - start))
    mean_square = evolution.diagonal.mean(-1)
    gap = evolution.rank_residual**2 * mean_square * length / (length - 1)
    assert gap[1] == pytest.approx(4.77e-7, rel=5e-3)
    error = 2 * evolution.rank_residual_stderr[1:4] / evolution.rank_residual[1:4]
    law = gap[:3] ** 3 * (length - 1) / length**2
    ratio = gap[1:4] / law
    # The errors before are cubed, and the first step has a next order.
    assert (np.abs(ratio - 1) < LIMIT * error + [0.03, 0.0, 0.0]).all()
    assert gap[3] < 1e-60
    assert evolution.below_floor[3:].all()
    assert not evolution.below_floor[:3].any()
    assert not evolution.undefined.any()
    for name in ("kernels", "kernels_stderr", "mean_correlation", "mean_correlation_stderr", "rank_residual_stderr"):
        assert np.isfinite(getattr(evolution, name)).all(), name
    np.testing.assert_allclose(evolution.mean_correlation[3:], 1, atol=1e-14)


def test_a_centred_part_made_of_rounding_is_flagged():
    """Behind an MLP the whole kernel is rounded, and what is left of a collapsed one is no kernel."""
    model = kp.Transformer(random_softmax(6, draws=8), depth=4, mlp=kp.MLP("relu", gain_in=np.sqrt(2)))
    evolution = kp.propagate(model, kp.kernels.equicorrelated(6, 0.99))
    assert evolution.below_floor.tolist() == [False, False, True, True, True]
    assert np.isfinite(evolution.kernels).all()


def test_float32_collapses_without_nan():
    model = kp.Transformer(random_softmax(6, draws=8), depth=12)
    evolution = kp.propagate(model, kp.kernels.equicorrelated(6, 0.5), dtype="float32")
    assert evolution.kernels.dtype == evolution.kernels_stderr.dtype == np.float32
    assert np.isfinite(evolution.kernels).all()
    assert evolution.below_floor[-1]


# The engine.


def test_chains_are_keyed_by_the_seed():
    def kernels(seed):
        return kp.propagate(kp.Transformer(random_softmax(T, seed=seed), depth=2), positive(T)).kernels

    np.testing.assert_array_equal(kernels(3), kernels(3))
    distinct = [kernels(seed)[-1][0, 0] for seed in (0, 1, 7, 2**32 - 1)]
    assert len(set(distinct)) == 4
    before = infinite._scan_chains._cache_size()
    for tau in (0.3, 2.0):
        model = kp.Transformer(random_softmax(T, seed=9, tau=tau, key_gain=1.1), depth=2)
        evolution = kp.propagate(model, positive(T))
    assert infinite._scan_chains._cache_size() == before
    # Layers draw independently: the second is not the first once more.
    again = kp.propagate(kp.Transformer(random_softmax(T, seed=9, tau=2.0, key_gain=1.1)), positive(T))
    np.testing.assert_allclose(again.kernels[1], evolution.kernels[1], rtol=1e-12)


def test_a_batch_of_kernels_has_the_axes_in_front():
    kernels = np.array([positive(T, 0), positive(T, 1)])
    model = kp.Transformer(random_softmax(T, causal=True), depth=2)
    both = kp.propagate(model, kernels, observables="all")
    one = kp.propagate(model, kernels[1], observables="all")
    assert both.kernels_stderr.shape == (2, 3, T, T)
    assert both.stable_rank_stderr.shape == (2, 3)
    assert both.attention_entropy is None
    np.testing.assert_allclose(both.kernels[1], one.kernels, rtol=1e-12)
    np.testing.assert_allclose(both.mean_correlation_stderr[1], one.mean_correlation_stderr, rtol=1e-9)
    np.testing.assert_array_equal(one.kernels_stderr[0], 0)
    assert (one.rank_residual_stderr[1:] > 0).all()


def test_logits_that_vanish_leave_given_attention_and_no_error():
    mask, bias = np.array([True, True, True, False, True]), BIAS
    vanishing = kp.Transformer(random_softmax(T, bias=bias, mask=mask, logit_scale="linear"), depth=3)
    given = kp.Transformer(softmax_attention(bias, mask), depth=3)
    one, other = (kp.propagate(model, positive(T)) for model in (vanishing, given))
    np.testing.assert_allclose(one.kernels, other.kernels, rtol=1e-12)
    assert one.kernels_stderr is None
    assert one.notes == ()


def test_saved_results_come_back_with_their_network(tmp_path):
    evolution = kp.propagate(kp.Transformer(random_softmax(T, rotary=[1.0], draws=2), depth=1), positive(T))
    evolution.save(tmp_path / "run.npz")
    back = kp.load(tmp_path / "run.npz")
    assert back == evolution
    assert int(back.description.attention.seed) == 0
