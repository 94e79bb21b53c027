"""The logits of random queries and keys: their covariances, and the attention that they make.

Second moments hold within 5 standard errors of the largest of some hundred, at fixed seeds; each test rejects a
covariance that is a little wrong.
"""

import jax
import jax.numpy as jnp
import numpy as np

from kernelprop.attention.random_softmax import random_softmax
from kernelprop.layers.random_logits import factor, lost_to_rounding, sample_attention
from kernelprop.split_kernel import SplitKernel, split
from tests.layers.random_cases import FAR, KERNELS, LAYERS, NEAR, PLAIN, T, logits, matrices, positive

DRAWS = 20_000


def samples_of(layer, kernel):
    return logits(layer, kernel[None], DRAWS, seed=2).reshape(DRAWS, -1)


def largest_error(samples, covariance):
    """In standard errors, of Gaussian samples' second moments."""
    variance = np.diag(covariance)
    error = np.sqrt((np.outer(variance, variance) + covariance**2) / len(samples))
    measured = samples.T @ samples / len(samples)
    return np.max(np.abs(measured - covariance) / error)


def test_logits_have_the_covariance_of_queries_times_keys():
    """Up to the part that a whole row shares: the key's side is centred."""
    samples = samples_of(random_softmax(T, tau=0.5, query_gain=3.0), NEAR)
    centre = np.eye(T) - 1 / T
    keys = centre @ NEAR @ centre
    assert largest_error(samples, 2.25 * np.kron(NEAR, keys)) < 5
    assert largest_error(samples, 2.25 * np.kron(np.diag(np.diag(NEAR)), keys)) > 5
    assert largest_error(samples, 1.08 * 2.25 * np.kron(NEAR, keys)) > 5


# Case 48: with one draw for queries and keys the logits would have mean q on the diagonal.
def test_rotary_logits_have_their_covariance():
    kernel, frequencies = positive(4, 1), np.array([1.0, 0.3, 0.05])
    samples = samples_of(random_softmax(4, rotary=frequencies), kernel)
    assert np.abs(samples.mean(0) / samples.std(0)).max() < 5 / np.sqrt(DRAWS)
    lag = (np.arange(4)[:, None] - np.arange(4)).reshape(-1)
    factors = [np.cos(np.multiply.outer(frequencies, lag[:, None] + sign * lag)).mean(0) for sign in (-1, 1)]
    still = np.kron(kernel, kernel)
    assert largest_error(samples, still * factors[0]) < 5
    assert largest_error(samples, still * factors[1]) > 10
    assert largest_error(samples, still) > 10


def test_a_sampled_matrix_is_the_one_that_the_map_uses():
    with jax.enable_x64(True):
        key = jax.random.fold_in(jax.random.key(5), 0)
        sampled = np.asarray(sample_attention(LAYERS["causal"], split(jnp.asarray(PLAIN)), key))
    np.testing.assert_allclose(sampled, matrices(LAYERS["causal"])[0, 0], atol=1e-14)
    np.testing.assert_array_equal(np.triu(sampled, 1), 0)


def test_a_masked_key_gets_no_weight():
    with jax.enable_x64(True):
        sampled = np.asarray(sample_attention(LAYERS["padding"], split(jnp.asarray(FAR)), jax.random.key(0)))
    np.testing.assert_array_equal(sampled[:, 2], 0)
    np.testing.assert_allclose(sampled.sum(1), 1)


def test_the_factor_gives_every_part_back():
    with jax.enable_x64(True):
        for kernel in (*KERNELS, np.zeros((T, T)), np.ones((T, T)), np.eye(T) - 1 / T):
            state = split(jnp.asarray(kernel))
            common, apart = (np.asarray(part) for part in factor(state))
            size = 1e-13 * max(np.abs(kernel).max(), 1e-300)
            np.testing.assert_allclose(common @ common, state.common, atol=size)
            np.testing.assert_allclose(apart @ common, state.cross, atol=size)
            np.testing.assert_allclose(apart @ apart.T, state.rest, atol=size)
            assert not lost_to_rounding(state)


def test_a_tiny_centred_part_keeps_its_relative_precision():
    rest = positive(T) - positive(T).mean(0) - positive(T).mean(1)[:, None] + positive(T).mean()
    with jax.enable_x64(True):
        state = SplitKernel(jnp.asarray(1.0), jnp.zeros(T), 1e-120 * jnp.asarray(rest))
        apart = np.asarray(factor(state).apart)
        np.testing.assert_allclose(apart @ apart.T, 1e-120 * rest, rtol=1e-12, atol=1e-134)
        assert not lost_to_rounding(state)
        noise = jnp.asarray(np.diag([1.0, -0.5, 0, 0, 0]))
        assert lost_to_rounding(SplitKernel(jnp.asarray(1.0), jnp.zeros(T), 1e-17 * noise))
        assert lost_to_rounding(SplitKernel(jnp.asarray(1.0), jnp.zeros(T), 1e-3 * noise))
