"""A symmetric product from its blocks below the diagonal is the product."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import kernelprop as kp
from kernelprop.attention import symmetric_product


@pytest.mark.parametrize("length", [8, 11])
def test_dense_attention_over_a_long_kernel_equals_the_dense_products(monkeypatch, length):
    monkeypatch.setattr(symmetric_product, "SHORTEST", 4)
    matrix, root = np.random.default_rng(0).normal(size=(2, length, length))
    kernel = root @ root.T
    with jax.enable_x64(True):
        operator = kp.dense(matrix)
        forward, backward = operator.sandwich(jnp.asarray(kernel)), operator.sandwich_transposed(jnp.asarray(kernel))
    np.testing.assert_allclose(forward, matrix @ kernel @ matrix.T, rtol=1e-12, atol=1e-11)
    np.testing.assert_allclose(backward, matrix.T @ kernel @ matrix, rtol=1e-12, atol=1e-11)
    # Every block above the diagonal is a mirrored one; those on it are products of their own.
    upper = np.triu(np.ones((length, length), bool), -(-length // 4) + 1)
    assert np.array_equal(np.asarray(forward)[upper], np.asarray(forward).T[upper])


def test_only_the_blocks_below_the_diagonal_are_computed(monkeypatch):
    """Counted by the compiler: 10 of 16 blocks."""
    monkeypatch.setattr(symmetric_product, "SHORTEST", 4)

    def operations(function):
        square = jax.ShapeDtypeStruct((256, 256), jnp.float32)
        return jax.jit(function).lower(square, square).compile().cost_analysis()["flops"]

    part = operations(symmetric_product.symmetric_product) / operations(jnp.matmul)
    assert part == pytest.approx(10 / 16, abs=0.01)
