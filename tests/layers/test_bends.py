"""Second-order maps of norms and MLPs, against differences of the maps they are derivatives of."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import kernelprop as kp
from kernelprop.layers.bends import bend
from kernelprop.split_kernel import split
from tests.gradient_cases import KERNEL

STEP = 2e-4
OVERLAP = np.random.default_rng(3).normal(size=(2, 2)) * 0.3
TANGENT = np.array([[0.5, 0.2], [0.2, 0.4]])
PAIR = KERNEL[:2, :2]

LAYERS = {
    "norm": (kp.Norm("pre", epsilon=0.1), lambda q1, q2, r: r / np.sqrt((q1 + 0.1) * (q2 + 0.1))),
    "gelu": (
        kp.MLP("gelu", gain_in=1.3, gain_out=0.7),
        lambda q1, q2, r: 0.49 * kp.dual("gelu")(1.69 * q1, 1.69 * q2, r / np.sqrt(q1 * q2)),
    ),
    "gated": (
        kp.GatedMLP("erf", gain_in=1.3, gain_gate=0.9, gain_out=0.7),
        lambda q1, q2, r: 0.49 * 0.81 * r * kp.dual("erf")(1.69 * q1, 1.69 * q2, r / np.sqrt(q1 * q2)),
    ),
}


def perturbed(f, i, j):
    """``Σ'_ij`` of ``z_i + εẏ_i`` and ``z_j + ηẏ_j``: its mixed second difference and its difference in ``η``."""
    x, y = OVERLAP, TANGENT

    def at(e, h):
        q1 = PAIR[i, i] + 2 * e * x[i, i] + e * e * y[i, i]
        q2 = PAIR[j, j] + 2 * h * x[j, j] + h * h * y[j, j]
        return f(q1, q2, PAIR[i, j] + h * x[i, j] + e * x[j, i] + e * h * y[i, j])

    s = STEP
    mixed = (at(s, s) - at(s, -s) - at(-s, s) + at(-s, -s)) / (4 * s * s)
    return mixed, (at(0, s) - at(0, -s)) / (2 * s)


@pytest.mark.parametrize("name", LAYERS)
def test_both_orders_are_those_of_differences(name):
    layer, f = LAYERS[name]
    with jax.enable_x64(True):
        found = jax.jit(bend)(jax.tree.map(jnp.asarray, layer), split(jnp.asarray(PAIR)))
        overlap = jnp.asarray(OVERLAP)
        transported = np.asarray(found.transport(overlap))
        unit = np.zeros((2, 2))
        for i, j in ((0, 1), (1, 0), (0, 0), (1, 1)):
            if i == j and name != "norm":
                continue  # (z + εẏ against z + ηẏ is off the diagonal: a dual at c close to 1 has no digits to spare)
            unit[:] = 0
            unit[i, j] = 1
            second = float(found.weighed(jnp.asarray((unit + unit.T) / 2)).second_order(overlap))
            mixed, first = perturbed(f, i, j)
            np.testing.assert_allclose(float(found.slope[i, j]) * TANGENT[i, j] + second, mixed, rtol=2e-5, atol=1e-6)
            np.testing.assert_allclose(transported[i, j], first, rtol=1e-6)


@pytest.mark.parametrize("name", ["relu", "gelu"])
def test_the_diagonal_is_a_moment_of_one_variable(name):
    """``E[φ'² ẏ²] − E[φ'²]Ẏ = X² E[(φ'²)'']`` and ``E[φφ'ẏ] = X (E φ²)'``, by differences of the moments in ``q``."""
    from kernelprop.activations import activation

    phi, q = activation(name), np.diag(PAIR)
    with jax.enable_x64(True):
        found = jax.jit(bend)(jax.tree.map(jnp.asarray, kp.MLP(name)), split(jnp.asarray(PAIR)))
        step = 1e-5

        def slope(moment):
            return np.asarray(moment(jnp.asarray(q + step)) - moment(jnp.asarray(q - step))) / (2 * step)

        twice = 2 * slope(phi.derivative_second_moment)
        np.testing.assert_allclose(np.diag(found.twist), twice, rtol=1e-8, atol=1e-9)
        np.testing.assert_allclose(np.diag(found.slope + found.drift), slope(phi.second_moment), rtol=1e-8)
        assert np.all(np.isfinite(found.cross))


def test_a_layer_without_a_second_order_map_is_named():
    with pytest.raises(ValueError, match="object has no second-order map"):
        bend(object(), split(jnp.eye(2)))
