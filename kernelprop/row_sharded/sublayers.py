"""The maps of a kernel's rows, a sublayer each: those of `kernelprop.layers`, on what one device holds."""

from functools import singledispatch
from typing import Any

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from kernelprop.activations import Activation
from kernelprop.activations.row_blocks import in_row_blocks
from kernelprop.activations.safe import inverse_root
from kernelprop.attention.dense import Dense
from kernelprop.attention.identity import Identity
from kernelprop.attention.layer import AttentionLayer, mean_over_heads, over_heads
from kernelprop.layers.block import Maps
from kernelprop.layers.gated_mlp import GatedMLP
from kernelprop.layers.mlp import MLP
from kernelprop.layers.norm import Norm, inverse_scale
from kernelprop.row_sharded.collectives import gathered, on_own_diagonal, own, ring_product, transposed
from kernelprop.row_sharded.row_kernel import RowKernel, row_congruence, split_rows


def norm_rows(norm: Norm, kernel: RowKernel) -> RowKernel:
    """``Σ_ij / sqrt((q_i + ε)(q_j + ε))``."""
    scale = inverse_scale(norm, kernel.diagonal())
    rest = kernel.rest * (own(scale, len(kernel.rest))[:, None] * scale[None, :])
    return row_congruence(kernel, rest, scale[None], (scale * kernel.cross)[None])


@singledispatch
def attention_rows(layer: Any, kernel: RowKernel, key: Array | None = None) -> RowKernel:
    """``mean_h A_h Σ A_hᵀ``; no draws, so that ``key`` is None. One kind of attention, one registration."""
    raise ValueError(f"attention: {type(layer).__name__} can't be followed by rows; use given or structured attention")


@attention_rows.register
def structured(layer: AttentionLayer, kernel: RowKernel, key: Array | None = None) -> RowKernel:
    """``A`` acts along the rows, which need no other device, then along those of the transpose."""

    def one_head(one: AttentionLayer, rows: Array) -> Array:
        return one.act(transposed(one.act(rows)))

    return _acted(over_heads(_act, layer, _vectors(kernel)), mean_over_heads(one_head, layer, kernel.rest), kernel)


@attention_rows.register
def given(layer: Dense, kernel: RowKernel, key: Array | None = None) -> RowKernel:
    """``A``'s own rows go round twice: ``R Aᵀ``, and ``A`` by what came out, transposed."""

    def vectors(one: Dense, both: Array) -> Array:
        return gathered(jnp.matmul(both, jnp.asarray(one.entries, both.dtype).T, precision=lax.Precision.HIGHEST))

    def one_head(one: Dense, rows: Array) -> Array:
        matrix = jnp.asarray(one.entries, rows.dtype)
        # R is symmetric: (R Aᵀ)ᵀ = A R, whose rows are acted on again.
        return ring_product(transposed(ring_product(rows, matrix)), matrix)

    return _acted(over_heads(vectors, layer, _vectors(kernel)), mean_over_heads(one_head, layer, kernel.rest), kernel)


@attention_rows.register
def untouched(layer: Identity, kernel: RowKernel, key: Array | None = None) -> RowKernel:
    """``A = I``."""
    return kernel


@singledispatch
def mlp_rows(mlp: Any, kernel: RowKernel) -> RowKernel:
    """The dual kernel of an MLP. One kind of MLP, one registration."""
    raise ValueError(f"mlp: {type(mlp).__name__} can't be followed by rows; use kp.MLP or kp.GatedMLP")


@mlp_rows.register
def plain(mlp: MLP, kernel: RowKernel) -> RowKernel:
    """``Σ_ij ← σ₂² E[φ(u)φ(v)] + b₂``."""
    q = mlp.gain_in**2 * kernel.diagonal() + mlp.bias_in
    through = _dual_rows(mlp.activation, mlp.gain_in**2 * kernel.join() + mlp.bias_in, q)
    return split_rows(mlp.gain_out**2 * through).shifted(mlp.bias_out)


@mlp_rows.register
def gated(mlp: GatedMLP, kernel: RowKernel) -> RowKernel:
    """``Σ ← σ₂² K ∘ σ_g² Σ``."""
    rows = kernel.join()
    through = _dual_rows(mlp.activation, mlp.gain_in**2 * rows, mlp.gain_in**2 * kernel.diagonal())
    return split_rows(mlp.gain_out**2 * through * (mlp.gain_gate**2 * rows))


def _dual_rows(activation: Activation, matrix: Float[Array, "rows T"], q: Float[Array, "T"]) -> Float[Array, "rows T"]:
    """``K(q_i, q_j, c_ij)`` of these rows, the diagonal exact."""
    mine, scale = own(q, len(matrix)), inverse_root(q)

    def entries(one: Array, rows: Array) -> Array:
        c = jnp.clip(rows * inverse_root(one) * scale[None, :], -1.0, 1.0)
        return activation.dual(jnp.broadcast_to(one, c.shape), jnp.broadcast_to(q[None, :], c.shape), c)

    return on_own_diagonal(in_row_blocks(entries, mine, matrix), activation.second_moment(mine))


def _vectors(kernel: RowKernel) -> Float[Array, "2 T"]:
    return jnp.stack([jnp.ones_like(kernel.cross), kernel.cross])


def _act(one: AttentionLayer, both: Array) -> Array:
    return one.act(both)


def _acted(acted: Array, rest: Array, kernel: RowKernel) -> RowKernel:
    acted = acted.reshape(-1, 2, acted.shape[-1])
    return row_congruence(kernel, rest, acted[:, 0], acted[:, 1])


ROWS = Maps(norm_rows, attention_rows, mlp_rows)
