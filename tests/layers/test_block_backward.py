"""Blocks backward: against plain loops with the naive sums."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import kernelprop as kp
from kernelprop.gradients import gradient_norms
from kernelprop.layers import mlp
from kernelprop.split_kernel import split
from tests.gradient_cases import COTANGENT, KERNEL, SMOOTH, T, softmax_matrices
from tests.naive_gradients import gelu_duals, naive, relu_duals

# The description, what the loops are told of it, and the heads.
NETWORKS = {
    "three heads": ({}, {}, 3),
    "residual and gelu": (
        {"mlp": kp.MLP("gelu", expansion=4), "residual": kp.Residual(attention=(0.7, 1.1), mlp=(0.9, 0.5))},
        {"duals": gelu_duals, "expansion": 4, "attention": (0.7, 1.1), "mlp": (0.9, 0.5)},
        None,
    ),
    "pre, final, gains, temperature": (
        {
            "mlp": kp.MLP("relu", expansion=2, gain_in=1.2, gain_out=0.8),
            "residual": SMOOTH,
            "norm": kp.Norm("pre", "rms", epsilon=0.1, final=True),
            "gains": kp.Gains(key=0.9, value=1.2, output=0.7, temperature=3.0),
        },
        {
            "duals": relu_duals,
            "expansion": 2,
            "attention": (0.6, 0.8),
            "mlp": (0.6, 0.8),
            "place": "pre",
            "epsilon": 0.1,
            "final": True,
            "gains": (0.9, 1.2, 0.7, 3.0),
            "mlp_gains": (1.2, 0.8),
        },
        None,
    ),
    "post, two heads": (
        {"mlp": kp.MLP("relu", expansion=1), "residual": SMOOTH, "norm": kp.Norm("post", epsilon=0.05)},
        {"duals": relu_duals, "attention": (0.6, 0.8), "mlp": (0.6, 0.8), "place": "post", "epsilon": 0.05},
        2,
    ),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_the_recursion_is_that_of_plain_loops(name):
    settings, plain, heads = NETWORKS[name]
    matrices = softmax_matrices(2) if heads is None else softmax_matrices(2, heads)
    norms = gradient_norms(kp.Transformer(kp.dense(matrices), **settings), KERNEL, COTANGENT)
    expected = naive(matrices.reshape(2, -1, T, T), KERNEL, COTANGENT, **plain)
    for row, value in expected.items():
        if "residual" in settings or not row.endswith(("_alpha", "_beta")):
            np.testing.assert_allclose(getattr(norms, row), value, rtol=1e-10, err_msg=row)


@pytest.mark.parametrize("layer", [kp.MLP("relu", gain_in=1.3, gain_out=0.7, bias_in=0.2), kp.GatedMLP("relu", 2, 1.3)])
def test_an_mlp_s_backward_map_is_the_derivative_of_its_forward_map(layer):
    """``G ∘ f_r`` with ``Σ'_ij = f(q_i, q_j, Σ_ij)``: differences off the diagonal, the loss ``⟨G, Σ'⟩``."""
    with jax.enable_x64(True):
        layer = jax.tree.map(jnp.asarray, layer)
        forward = jax.jit(lambda s: jnp.sum(jnp.asarray(COTANGENT) * mlp.forward(layer, split(s)).join()))
        back, rows = jax.jit(mlp.backward)(layer, split(jnp.asarray(KERNEL)), jnp.asarray(COTANGENT))
        step = 1e-6
        for i, j in ((0, 1), (1, 3), (2, 0)):
            move = np.zeros((T, T))
            move[i, j] = move[j, i] = step
            slope = (forward(jnp.asarray(KERNEL + move)) - forward(jnp.asarray(KERNEL - move))) / (2 * step)
            np.testing.assert_allclose(float(slope), 2 * float(back[i, j]), rtol=1e-7)
        np.testing.assert_allclose(float(rows["branch"]), float(forward(jnp.asarray(KERNEL))), rtol=1e-12)
