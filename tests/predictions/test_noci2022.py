"""The papers' closed forms against brute force, Monte Carlo and the engine."""

import numpy as np
import pytest

import kernelprop as kp
from kernelprop.layers import residual
from kernelprop.predictions import noci2022


def jacobians(x, value, key):
    """‖∂S/∂W_V‖² and ‖∂S/∂W_Q‖² at W_Q = 0 of one layer, from the derivative of the softmax written out."""
    length, head_width = len(x), key.shape[1]
    attention = np.full((length, length), 1 / length)
    mixed = attention @ x
    by_value = value.shape[1] * np.sum(mixed**2)
    # dA_ij/dM_ij' = A_ij (δ_jj' − A_ij'), M = X W_Q (X W_K)ᵀ/√d_k.
    softmax = np.eye(length) / length - 1 / length**2
    keys, values = x @ key / np.sqrt(head_width), x @ value
    moved = values.T @ softmax @ keys  # (d_v, d_k), the same for every query row
    return by_value, np.sum(x**2) * np.sum(moved**2)


@pytest.mark.parametrize(("length", "width"), [(3, 4), (5, 2)])
def test_fixed_inputs(length, width):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(length, width))
    draws = 6000
    samples = np.array(
        [jacobians(x, rng.normal(size=(width, 3)) * 1.3, rng.normal(size=(width, 6)) * 0.7) for _ in range(draws)]
    )
    assert samples[0, 0] == pytest.approx(noci2022.value_jacobian(x, 3), rel=1e-12)
    mean, error = samples[:, 1].mean(), samples[:, 1].std() / np.sqrt(draws)
    predicted = noci2022.query_jacobian(x, 3, 1.3**2, 0.7**2)
    assert error < 0.03 * predicted
    assert abs(mean - predicted) < 4 * error
    assert abs(mean - predicted * 1.3) > 4 * error  # the control: a value variance not squared


@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.9])
def test_gaussian_inputs(correlation):
    length, width, draws = 4, 3, 400_000
    rng = np.random.default_rng(1)
    root = np.linalg.cholesky((1 - correlation) * np.eye(length) + correlation)
    x = root @ rng.normal(size=(draws, length, width)) * 1.2
    centred = x - x.mean(1, keepdims=True)
    scatter = np.swapaxes(centred, 1, 2) @ centred
    query = 5 * np.sum(x**2, (1, 2)) * np.sum(scatter**2, (1, 2)) / length**2
    value = 5 * np.sum(x.sum(1) ** 2, 1) / length
    for samples, predicted in (
        (query, noci2022.expected_query_jacobian(length, width, 5, correlation, 1.44)),
        (value, noci2022.expected_value_jacobian(length, width, 5, correlation, 1.44)),
    ):
        error = samples.std() / np.sqrt(draws)
        assert error < 0.03 * predicted
        assert abs(samples.mean() - predicted) < 4 * error
    # The control: the leading order is off by 1 + 4(1−ρ)/(Td), from 3 to 33 %.
    leading = noci2022.leading_query_jacobian(length, width, 5, correlation, 1.44)
    error = query.std() / np.sqrt(draws)
    assert abs(query.mean() - leading) > 4 * error


def test_two_positions_of_one_feature():
    """X = (a, b): XᵀCX = u², ‖X‖² = u² + v² with u, v = (a ∓ b)/√2, so E (u²+v²) u⁴ = 15 + 3, over T² = 4."""
    assert noci2022.expected_query_jacobian(2, 1, 1) == pytest.approx(18 / 4)


@pytest.mark.parametrize(("scale", "powers"), [(3.0, (6, 2))])
def test_cubic_and_linear_growth(scale, powers):
    query = [noci2022.expected_query_jacobian(8, 4, 4, 0.3, s**2) for s in (1.0, scale)]
    value = [noci2022.expected_value_jacobian(8, 4, 4, 0.3, s**2) for s in (1.0, scale)]
    assert np.log(query[1] / query[0]) / np.log(scale) == pytest.approx(powers[0])
    assert np.log(value[1] / value[0]) / np.log(scale) == pytest.approx(powers[1])


def test_moments_are_those_of_the_engine():
    kernel = 0.8 * np.eye(5) + 0.2
    weights = kp.Residual(attention=(1, 0.5), mlp=(1, 0.3))
    last = kp.propagate(kp.Transformer(kp.uniform(5), 7, kp.MLP("linear"), weights), kernel, "last").kernels[-1]
    expected = noci2022.moments_through_depth(kernel, 7, 0.5, 0.3)
    np.testing.assert_allclose([last.sum(), np.trace(last)], expected, rtol=1e-12)


def test_the_depth_limit():
    depth = 4000
    weights = residual.depth_scaled(depth, 1.2, 0.7)
    model = kp.Transformer(kp.uniform(6), depth, kp.MLP("linear"), weights)
    evolution = kp.propagate(model, np.eye(6), "last")
    limit = noci2022.moments_at_infinite_depth(np.eye(6), 1.2, 0.7)
    last = evolution.kernels[-1]
    # The remainder of (1 + x/L)^L is x²/(2L).
    np.testing.assert_allclose([last.sum(), np.trace(last)], limit, rtol=1.5 * (1.2**4 + 0.7**4) / (2 * depth))
    assert evolution.mean_correlation[-1] == pytest.approx(noci2022.limiting_cosine(6, 1.2), rel=1e-3)
    assert evolution.mean_correlation[-1] != pytest.approx(noci2022.limiting_cosine(6, 1.25), rel=1e-3)


def test_depths_that_outgrow_the_numbers():
    """``4^1100`` is no number; a centred kernel has nothing that grows."""
    assert noci2022.moments_through_depth(np.eye(2), 1100, 1.0, 1.0) == (np.inf, np.inf)
    assert noci2022.moments_through_depth(np.eye(2) - 0.5, 1100, 1.0, 0.0) == (0.0, 1.0)
    assert noci2022.moments_at_infinite_depth(np.eye(2), 30.0, 0.0) == (np.inf, np.inf)


@pytest.mark.parametrize(("branch", "cosine"), [(27.0, 1.0), (1e200, 1.0), (0.0, 0.0), (1e-9, 1e-18 / 16)])
def test_the_limiting_cosine_at_its_ends(branch, cosine):
    assert noci2022.limiting_cosine(16, branch) == pytest.approx(cosine, rel=1e-15)
