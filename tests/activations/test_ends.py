"""Correlations of +-1 and next to them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import kernelprop.activations as act

CORRELATIONS = np.array([1, 0.5, 0, -1])


def unit_relu(c):
    return 2 * act.dual("relu")(1.0, 1.0, c)


def test_case_24_value_and_slope_of_the_relu_map_at_the_ends():
    np.testing.assert_allclose(unit_relu(CORRELATIONS), [1, 0.6089977810442294, 0.3183098861837907, 0], atol=2e-16)
    slopes = [1, 0.6666666666666667, 0.5, 0]
    np.testing.assert_allclose(2 * act.dual_derivative("relu")(1.0, 1.0, CORRELATIONS), slopes, atol=2e-16)
    with jax.enable_x64(True):
        differentiated = jax.vmap(jax.grad(unit_relu))(jnp.asarray(CORRELATIONS, float))
    np.testing.assert_allclose(differentiated, slopes, atol=2e-16)


def test_case_25_differentiating_changes_no_value():
    c = 1 - 2.0**-40
    with jax.enable_x64(True):
        value, slope = jax.value_and_grad(unit_relu)(jnp.float64(c))
    assert float(value) == float(unit_relu(c))
    assert 1 - float(value) == pytest.approx(9.094944414729533e-13, abs=1.2e-16)
    assert float(slope) == pytest.approx(0.9999995706957263, rel=1e-15)


def test_case_26_rounding_beyond_one_is_one_and_more_is_refused():
    c = 26 / (np.sqrt(26) * np.sqrt(26))
    above = np.nextafter(1.0, 2.0)
    for one in (c, above):
        assert unit_relu(one) == 1
        assert 2 * act.dual_derivative("relu")(1.0, 1.0, one) == 1
    with pytest.raises(
        ValueError, match=r"c: entry \(1,\), 1\.003846\d*, is not a correlation; it must lie in \[-1, 1\]"
    ):
        unit_relu([0.0, 26.1 / 26])


def test_rounding_beyond_one_inside_a_traced_kernel_is_one():
    with jax.enable_x64(True):
        above = jnp.float64(np.nextafter(1.0, 2.0))
        for name in ("relu", "erf", "gelu", "sin"):
            phi = act.activation(name)
            kernel = jax.jit(jax.value_and_grad(lambda c, phi=phi: phi.dual(jnp.float64(1), jnp.float64(1), c)))
            (value, slope), (there, _) = kernel(above), kernel(jnp.float64(1))
            assert value == there
            assert np.isfinite(slope)


def test_a_negative_variance_is_refused_with_its_index():
    with pytest.raises(ValueError, match=r"q1: entry \(1,\), -1.0, is negative"):
        act.dual("relu")([1.0, -1.0], 1.0, 0.5)
    with pytest.raises(ValueError, match="q2: nan; every entry must be finite"):
        act.dual("relu")(1.0, float("nan"), 0.5)


@pytest.mark.parametrize("name", ["relu", "erf", "gelu", "sin", "linear"])
def test_a_zero_variance_has_finite_values_and_gradients(name):
    phi = act.activation(name)
    with jax.enable_x64(True):
        total = jax.jit(jax.value_and_grad(lambda q: phi.kernel(q, jnp.eye(2)).sum()))
        value, gradient = total(jnp.array([0.0, 1.0]))
    assert np.isfinite(value)
    assert np.isfinite(gradient).all()
    assert act.dual(name)(0.0, 1.0, 0.5) == 0
