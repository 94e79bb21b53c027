"""Haar matrices as products of random reflections, a block of columns at a time."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from kernelprop.precision import full_product

# Blocks of so many columns, or so many blocks: products of matrices do the work, and building stays short.
COLUMNS, BLOCKS = 64, 16


def reflected(gaussian: Float[Array, "rows columns"]) -> Float[Array, "rows columns"]:
    """A matrix with orthonormal columns, Haar, from independent standard normals, ``rows ≥ columns``.

    ``Q = H_1 … H_m · diag(s)``: ``H_k`` reflects ``x_k``, the ``k``-th column from its diagonal down, to
    ``−s_k ‖x_k‖ e_k``, ``s_k`` the sign of its first entry. It is the orthogonal factor with a positive diagonal of
    *some* Gaussian matrix: the rotations before leave the later columns Gaussian, so that they needn't be applied to
    them (Stewart 1980, SIAM J. Numer. Anal. 17:403; Mezzadri 2007, arXiv math-ph/0609050). Exact in distribution, and
    half the work of a factorisation, nearly all of it products: ``b`` reflections at once are ``1 − V T Vᵀ`` with
    ``T⁻¹ = ½ + the strict upper triangle of VᵀV``.
    """
    rows, columns = gaussian.shape
    below = jnp.tril(gaussian)
    first = jnp.diagonal(below)
    sign = jnp.where(first < 0, -jnp.ones_like(first), jnp.ones_like(first))
    directions = below + jnp.eye(rows, columns, dtype=below.dtype) * (sign * _norms(below))[None, :]
    directions = directions / _norms(directions)[None, :]
    factor = jnp.eye(rows, columns, dtype=below.dtype) * sign[None, :]
    block = max(COLUMNS, -(-columns // BLOCKS))
    for start in reversed(range(0, columns, block)):
        # Above and left of the block's corner nothing has been reflected yet.
        part = directions[start:, start : start + block]
        factor = factor.at[start:, start:].set(_reflect(part, factor[start:, start:]))
    return factor


def _norms(matrix: Float[Array, "rows columns"]) -> Float[Array, "columns"]:
    return jnp.sqrt(jnp.sum(matrix * matrix, axis=0))


def _reflect(directions: Float[Array, "rows block"], matrix: Float[Array, "rows columns"]) -> Array:
    size = directions.shape[1]
    inverse = jnp.triu(full_product(directions.T, directions), 1) + 0.5 * jnp.eye(size, dtype=matrix.dtype)
    seen = jax.scipy.linalg.solve_triangular(inverse, full_product(directions.T, matrix), lower=False)
    return matrix - full_product(directions, seen)
