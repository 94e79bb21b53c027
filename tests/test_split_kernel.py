import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kernelprop as kp
from kernelprop.split_kernel import split, unit_of


@jax.jit
def pieces(kernel):
    state = split(kernel)
    return state.join(), state.rest, state.moments()


@given(length=st.sampled_from([2, 5, 9]), rank=st.integers(1, 6), shift=st.floats(-3, 3), seed=st.integers(0, 999))
def test_splitting_and_joining(length, rank, shift, seed):
    root = np.random.default_rng(seed).normal(size=(length, rank)) + shift
    kernel = root @ root.T
    with jax.enable_x64(True):
        joined, rest, moments = jax.tree.map(np.asarray, pieces(jnp.asarray(kernel)))
    scale = np.abs(kernel).max()
    diagonal = np.diag(kernel)
    centring = np.eye(length) - 1 / length
    comparable = diagonal.min() >= diagonal.max() / 16
    expected = centring @ kernel @ centring if comparable else kernel
    np.testing.assert_allclose(rest, expected, atol=1e-14 * scale * length)
    np.testing.assert_allclose(joined, kernel, atol=1e-14 * scale)
    np.testing.assert_allclose(moments["diagonal"], diagonal, atol=1e-14 * scale)
    np.testing.assert_allclose(moments["participation_ratio"], kp.observables.participation_ratio(kernel), rtol=1e-12)
    np.testing.assert_allclose(moments["mean_correlation"], kp.observables.mean_correlation(kernel), atol=1e-11)
    # The square is what rounding acts on: near zero its root is worth half the digits.
    share = np.trace(centring @ kernel @ centring) / np.trace(kernel)
    np.testing.assert_allclose(moments["rank_residual"] ** 2, share, atol=1e-14)


def test_one_position_has_no_correlation():
    assert np.isnan(split(jnp.ones((1, 1))).moments()["mean_correlation"])


def test_a_small_position_keeps_its_digits():
    scales = np.array([1.0, 1e-9, 0.0])
    kernel = np.outer(scales, scales) * np.array([[1, 0.3, 0], [0.3, 1, 0], [0, 0, 1]])
    with jax.enable_x64(True):
        joined, _, moments = jax.tree.map(np.asarray, pieces(jnp.asarray(kernel)))
    np.testing.assert_array_equal(joined, kernel)
    np.testing.assert_array_equal(moments["diagonal"], scales**2)


def test_arithmetic_is_that_of_the_kernels():
    with jax.enable_x64(True):
        a, b = split(jnp.eye(3)), split(jnp.ones((3, 3)) + jnp.diag(jnp.arange(3.0)))
        together = a.scaled(jnp.asarray(0.5)).plus(b.scaled(jnp.asarray(2.0))).join()
        np.testing.assert_allclose(together, 0.5 * np.eye(3) + 2 * (np.ones((3, 3)) + np.diag([0, 1, 2])), atol=1e-15)


def test_equal_rows_have_residual_zero():
    assert split(jnp.ones((4, 4))).moments()["rank_residual"] == pytest.approx(0, abs=1e-7)


@pytest.mark.parametrize(("dtype", "scales"), [("float32", (1e-18, 1e22, 1e36)), ("float64", (1e-300, 1e160, 1e300))])
def test_shares_do_not_know_the_scale(dtype, scales):
    """Squares of the entries leave the type's range long before the entries do."""
    kernel = np.array([[1, 0.5, 0.2], [0.5, 1, 0.4], [0.2, 0.4, 1]])
    with jax.enable_x64(True):
        found = [pieces(jnp.asarray(scale * kernel, dtype))[2] for scale in scales]
    for moments in found:
        for name, expected in (
            ("participation_ratio", 9 / (3 + 2 * (0.25 + 0.04 + 0.16))),
            ("mean_correlation", 1.1 / 3),
            ("rank_residual", np.sqrt((3 - (3 + 2.2) / 3) / 3)),
        ):
            np.testing.assert_allclose(moments[name], expected, rtol=1e-5 if dtype == "float32" else 1e-13)


def test_multiples_by_a_power_of_two_lose_nothing():
    """At an ordinary scale the numbers are the very same."""
    kernel = np.exp(-0.3 * np.abs(np.subtract.outer(np.arange(7), np.arange(7)))) * np.outer(*2 * [np.arange(7) + 3.0])
    with jax.enable_x64(True):
        one, other = (pieces(jnp.asarray(scale * kernel))[2] for scale in (1.0, 2.0**-60))
    for name in ("participation_ratio", "mean_correlation", "rank_residual"):
        assert one[name] == other[name], name
    units = [float(unit_of(jnp.full(3, x, jnp.float32))) for x in (1.0, 1.5, 2.0, 3e-30)]
    assert units == [1.0, 1.0, 0.5, 2.0**99]
