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
