"""Functions that one quadrature rule suits at every variance, and what that rule finds."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from kernelprop.activations import mehler
from kernelprop.activations.integrand import integrand


def kink_at_one(x):
    return jnp.maximum(x - 1, 0)


def narrow(x):
    return jnp.exp(-(((x - 3) / 0.01) ** 2))


def wave(x):
    return jnp.sin(x)


@pytest.mark.parametrize(
    ("function", "suited"),
    [(jnp.tanh, True), (jax.nn.relu, True), (jax.nn.softplus, True), (kink_at_one, False), (narrow, False)],
)
def test_a_function_is_graded_where_halving_intervals_follow_it(function, suited):
    assert integrand(function).graded is suited


def test_a_wave_is_followed_near_0_only():
    assert not integrand(wave).graded


@pytest.mark.parametrize(
    "function",
    [
        pytest.param(jnp.tanh, id="tanh"),
        pytest.param(jax.nn.relu, id="relu", marks=pytest.mark.slow),
        pytest.param(jax.nn.softplus, id="softplus", marks=pytest.mark.slow),
    ],
)
def test_both_rules_find_the_same_coefficients(function):
    """Two quadratures with other nodes; the second of them follows the function at each variance."""
    with jax.enable_x64(True):
        q, whole = jnp.array([1e-6, 1e-3, 0.3, 1.0, 7.0, 1e3, 1e6]), jnp.array(1.0)
        by_one, square = map(np.asarray, mehler._expand_by_one_rule(integrand(function), q, whole))
        by_own, expected = map(np.asarray, mehler._expand(integrand(function), q, whole))
    np.testing.assert_allclose(square, expected, rtol=2e-13)
    np.testing.assert_allclose(by_one / np.sqrt(expected), by_own / np.sqrt(expected), atol=2e-13)


@pytest.mark.slow
def test_the_rule_misses_a_kink_that_it_does_not_end_at():
    """What the choice between the rules is for."""
    with jax.enable_x64(True):
        q, whole = jnp.array([1.0]), jnp.array(1.0)
        by_one, _ = mehler._expand_by_one_rule(integrand(kink_at_one), 2 * q, whole)
        by_own, _ = mehler._expand(integrand(kink_at_one), 2 * q, whole)
    assert np.abs(by_one - by_own).max() > 1e-6
