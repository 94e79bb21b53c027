"""Structured attention over a long kernel, panel by panel, is attention."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import kernelprop as kp
from kernelprop.attention import row_panels
from kernelprop.attention.sliding_window import sliding_window

LENGTH = 11
OPERATORS = {
    "espa": lambda length: kp.espa(length, gammas=[1.0, 0.1])[0],
    "of rank two": lambda length: kp.uspa(length, 1, rho0=0.3)[0],
    "causal uniform": lambda length: kp.uniform(length, causal=True),
    "mix of a window": lambda length: kp.mix(sliding_window(length, 3), 0.6, -0.3),
    "mix of a window on both sides": lambda length: kp.mix(sliding_window(length, 3, causal=False), 0.6, 0.3),
    "mix of uniform": lambda length: kp.mix(kp.uniform(length), 0.6, 0.3),
    "blocks of espa": lambda length: kp.block_diagonal(OPERATORS["espa"](length // 3), 3),
    "blocks of a mix": lambda length: kp.block_diagonal(OPERATORS["mix of a window"](length // 2), 2),
    "mix of blocks": lambda length: kp.mix(OPERATORS["blocks of espa"](length), 0.6, 0.3),
}


def kernel_of(length):
    root = np.random.default_rng(0).normal(size=(length, length))
    return root @ root.T / length


# Blocks of two rows: a last panel that is full, one that is padded, panels of one block.
@pytest.mark.parametrize(
    ("name", "length", "rows"),
    [
        ("espa", 12, 4),
        ("of rank two", LENGTH, 4),
        ("causal uniform", 5, 2),
        ("mix of a window", LENGTH, 4),
        ("mix of a window on both sides", 12, 4),
        ("mix of uniform", LENGTH, 4),
        ("blocks of espa", 12, 4),
        ("blocks of a mix", 10, 4),
        ("mix of blocks", 9, 4),
    ],
)
def test_panels_equal_the_dense_products(monkeypatch, name, length, rows):
    monkeypatch.setattr(row_panels, "WHOLE", rows)
    monkeypatch.setattr(row_panels, "PANEL", rows)
    operator, kernel = OPERATORS[name](length), kernel_of(length)
    matrix = operator.as_matrix()
    with jax.enable_x64(True):
        forward, backward = operator.sandwich(jnp.asarray(kernel)), operator.sandwich_transposed(jnp.asarray(kernel))
    np.testing.assert_allclose(forward, matrix @ kernel @ matrix.T, atol=1e-13)
    np.testing.assert_allclose(backward, matrix.T @ kernel @ matrix, atol=1e-13)


@pytest.mark.parametrize("name", OPERATORS)
def test_down_the_rows_as_along_them(name):
    length = 12
    operator = OPERATORS[name](length)
    x, matrix = np.random.default_rng(1).normal(size=(length, 3)), operator.as_matrix()
    with jax.enable_x64(True):
        forward, backward = operator.act_on_rows(jnp.asarray(x)), operator.act_transposed_on_rows(jnp.asarray(x))
    np.testing.assert_allclose(forward, matrix @ x, atol=1e-14)
    np.testing.assert_allclose(backward, matrix.T @ x, atol=1e-14)


def test_a_length_beyond_one_panel_equals_the_dense_products():
    length = row_panels.WHOLE + 1
    operator, kernel = OPERATORS["espa"](length), kernel_of(length)
    matrix = operator.as_matrix()
    with jax.enable_x64(True):
        forward = jax.jit(lambda s: operator.sandwich(s))(jnp.asarray(kernel))
    np.testing.assert_allclose(forward, matrix @ kernel @ matrix.T, atol=1e-12)


@pytest.mark.slow  # the way back through the loop takes seconds to compile
def test_a_users_gradient_goes_through_the_panels(monkeypatch):
    """``d⟨C, A S Aᵀ⟩ / dS = Aᵀ C A``."""
    monkeypatch.setattr(row_panels, "WHOLE", 4)
    monkeypatch.setattr(row_panels, "PANEL", 4)
    operator, cotangent = OPERATORS["of rank two"](LENGTH), kernel_of(LENGTH)
    matrix = operator.as_matrix()
    with jax.enable_x64(True):
        slope = jax.grad(lambda s: jnp.vdot(cotangent, operator.sandwich(s)))(jnp.asarray(kernel_of(LENGTH)))
    expected = matrix.T @ cotangent @ matrix
    np.testing.assert_allclose(slope + slope.T, expected + expected.T, atol=1e-12)


def test_a_long_kernel_is_changed_in_place():
    """The program needs no second matrix beside the one that it fills."""
    kernel = jax.ShapeDtypeStruct((2048, 2048), jnp.float32)
    operator = jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float32), OPERATORS["espa"](2048))
    memory = jax.jit(lambda s: operator.sandwich(s)).lower(kernel).compile().memory_analysis()
    assert memory.temp_size_in_bytes < 0.5 * 4 * 2048**2


@pytest.mark.parametrize("name", ["espa", "of rank two", "mix of a window"])
def test_all_rows_at_once_are_the_panels(monkeypatch, name):
    """What an accelerator runs; its program is made here, too."""
    monkeypatch.setattr(row_panels, "WHOLE", 4)
    monkeypatch.setattr(row_panels, "PANEL", 4)
    operator, kernel = OPERATORS[name](LENGTH), kernel_of(LENGTH)
    jax.jit(lambda s: operator.sandwich(s)).trace(jnp.asarray(kernel)).lower(lowering_platforms=("cuda",))
    monkeypatch.setattr(row_panels.lax, "platform_dependent", lambda *x, cpu, default: default(*x))
    matrix = operator.as_matrix()
    with jax.enable_x64(True):
        forward, backward = operator.sandwich(jnp.asarray(kernel)), operator.sandwich_transposed(jnp.asarray(kernel))
    np.testing.assert_allclose(forward, matrix @ kernel @ matrix.T, atol=1e-13)
    np.testing.assert_allclose(backward, matrix.T @ kernel @ matrix, atol=1e-13)
