"""Scaling by powers of two against the standard library's, to the ends of both types."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from kernelprop.powers_of_two import exponent, power, times_power


@pytest.mark.parametrize(("dtype", "least", "most"), [("float32", -126, 127), ("float64", -1022, 1023)])
def test_powers_are_exact(dtype, least, most):
    with jax.enable_x64(True):
        exponents = np.arange(least, most + 1)
        found = np.asarray(power(jnp.asarray(exponents), jnp.dtype(dtype)))
        assert found.dtype == dtype
        np.testing.assert_array_equal(found, [math.ldexp(1.0, e) for e in exponents.tolist()])


def test_a_number_far_outside_comes_back_right():
    with jax.enable_x64(True):
        values = jnp.asarray([0.7, -1.3e-300, 1.7e308, 0.5, 0.5, 0.0])
        exponents = jnp.asarray([1000, 1900, -2000, 6400, -6400, 6400])
        found = np.asarray(times_power(values, exponents))
    # Python's raises where the result is too large.
    expected = [math.ldexp(0.7, 1000), math.ldexp(-1.3e-300, 1900), math.ldexp(1.7e308, -2000), np.inf, 0.0, 0.0]
    np.testing.assert_array_equal(found, expected)


def test_exponents_bound_the_largest_and_stay_normal():
    # Numbers below the normal ones count as 0.
    expected = {1.0: 1, 0.75: 0, 1e-310: 0, 1e300: 997, np.inf: 0, 0.0: 0, np.nan: 0, 1.7e308: 1022, 2.3e-308: -1020}
    with jax.enable_x64(True):
        found = np.asarray(exponent(jnp.asarray(list(expected))))
    assert found.tolist() == list(expected.values())
