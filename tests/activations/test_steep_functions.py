"""Steep smooth functions whose tails are a difference of two numbers near 1: rounding there is no kink."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import quad

import kernelprop.activations as act


def square_of_derivative(steepness, q):
    """``E[k² sech⁴(k z)]``, ``z ~ N(0, q)``."""

    def integrand(y):
        return steepness * np.exp(-((y / steepness) ** 2) / (2 * q)) / np.sqrt(2 * np.pi * q) / np.cosh(y) ** 4

    return quad(integrand, -18, 18, epsabs=1e-13, epsrel=1e-13, limit=200)[0]


@pytest.mark.parametrize(
    "steepness",
    [20.0, pytest.param(10.0, marks=pytest.mark.slow), pytest.param(100.0, marks=pytest.mark.slow)],
)
def test_the_derivative_of_a_steep_tanh(steepness):
    derivative = act.dual_derivative(lambda x: jnp.tanh(steepness * x))
    for q in (0.1, 1.0, 50.0):
        assert derivative(q, q, 1.0) == pytest.approx(square_of_derivative(steepness, q), rel=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize(
    "function",
    [lambda x: 1 - jnp.tanh(20 * x) ** 2, lambda x: 1 - jax.nn.sigmoid(40 * x), lambda x: jax.nn.sigmoid(30 * x)],
)
def test_functions_that_fall_to_rounding_are_smooth(function):
    assert np.isfinite(act.dual(function)(1.0, 1.0, [0.5, 1.0])).all()
    assert np.isfinite(act.dual_derivative(function)(1.0, 1.0, [0.5, 1.0])).all()


def squared_slope(steepness, shift):
    """``E[k² sech⁴(k (z - s))]``, ``z ~ N(0, 1)``, around where the slope is."""

    def integrand(y):
        return steepness * np.exp(-((shift + y / steepness) ** 2) / 2) / np.sqrt(2 * np.pi) / np.cosh(y) ** 4

    return quad(integrand, -18, 18, epsabs=0, epsrel=1e-13, limit=200)[0]


@pytest.mark.parametrize(
    ("steepness", "shift"),
    [(2.0, -4.0), pytest.param(10.0, 1.0, marks=pytest.mark.slow), pytest.param(1.0, 6.0, marks=pytest.mark.slow)],
)
def test_what_is_left_of_a_flat_tail_is_rounding(steepness, shift):
    """``1 - tanh²`` keeps the rounding of 1 where it has fallen to nothing: no kink is there."""
    derivative = act.dual_derivative(lambda x: jnp.tanh(steepness * (x - shift)))
    assert derivative(1.0, 1.0, 1.0) == pytest.approx(squared_slope(steepness, shift), rel=1e-10)


@pytest.mark.slow
def test_a_shifted_gelu_is_smooth():
    assert np.isfinite(act.dual_derivative(lambda x: jax.nn.gelu(5 * (x - 2)))(1.0, 1.0, [0.5, 1.0])).all()


@pytest.mark.slow
def test_a_small_kink_beside_a_large_function_is_still_found():
    """``1e-6 (x - 0.3)₊`` in the flat part of a tanh: its slope jumps."""
    found = act.dual_derivative(lambda x: 1e-6 * jnp.maximum(x - 0.3, 0) + jnp.tanh(x - 6))(1.0, 1.0, 1.0)
    nodes, weights = np.polynomial.legendre.leggauss(200)
    expected = 0.0
    for low, high in ((-13, 0.3), (0.3, 3), (3, 8), (8, 13)):
        x = (low + high) / 2 + (high - low) / 2 * nodes
        slope = 1e-6 * (x > 0.3) + 1 / np.cosh(x - 6) ** 2
        expected += (high - low) / 2 * weights @ (slope**2 * np.exp(-(x**2) / 2)) / np.sqrt(2 * np.pi)
    assert found == pytest.approx(expected, rel=1e-9)
