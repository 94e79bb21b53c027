"""Sums over windows by small products are the sums."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from kernelprop.attention.row_panels import action_on_both_sides
from kernelprop.attention.sliding_window import sliding_window
from kernelprop.attention.window_sums import window_sums, window_sums_of_rows

# One block, a last block that is not full, windows inside a block and over many, windows over whole blocks of blocks.
LENGTHS = (1, 5, pytest.param(33, marks=pytest.mark.slow), 100, pytest.param(1030, marks=pytest.mark.slow))
WINDOWS = ((0, 0), (-3, 2), (-16, 0), (-63, 63), (-699, 10), (-40, -20), (5, 9), (-2000, 2000))


@pytest.mark.parametrize("length", LENGTHS)
def test_every_window_of_whole_numbers_is_summed_exactly(length):
    x = np.random.default_rng(length).integers(-9, 10, size=(2, length)).astype(float)
    place = np.arange(length)
    lag = place[None, :] - place[:, None]
    for first, last in WINDOWS:
        expected = x @ ((lag >= first) & (lag <= last)).astype(float).T
        with jax.enable_x64(True):
            along, down = window_sums(jnp.asarray(x), first, last), window_sums_of_rows(jnp.asarray(x.T), first, last)
        np.testing.assert_array_equal(along, expected)
        np.testing.assert_array_equal(down, expected.T)


def test_nothing_is_subtracted():
    """A large number outside of a window leaves no rounding in it, as a difference of running sums would."""
    x = np.r_[1e16, np.full(199, 0.1)]
    with jax.enable_x64(True):
        sums = np.asarray(window_sums(jnp.asarray(x), -9, 0))
    np.testing.assert_allclose(sums[10:], 1.0, rtol=1e-15)
    running = np.cumsum(x)
    assert np.abs(running[10:] - running[:-10] - 1).max() > 0.1


@pytest.mark.slow
def test_panels_of_a_long_kernel_equal_the_dense_products():
    operator = sliding_window(1100, 100, causal=False)
    root = np.random.default_rng(0).normal(size=(1100, 20))
    matrix, kernel = operator.as_matrix(), root @ root.T
    with jax.enable_x64(True):
        forward = jax.jit(operator.sandwich)(jnp.asarray(kernel))
        backward = jax.jit(operator.sandwich_transposed)(jnp.asarray(kernel))
        plain = action_on_both_sides(lambda x: x @ matrix.T, lambda x: matrix @ x, jnp.asarray(kernel))
    np.testing.assert_allclose(forward, matrix @ kernel @ matrix.T, atol=1e-12)
    np.testing.assert_allclose(backward, matrix.T @ kernel @ matrix, atol=1e-11)
    np.testing.assert_allclose(plain, matrix @ kernel @ matrix.T, atol=1e-12)
