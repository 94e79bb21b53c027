"""The maps of a kernel's rows, a sublayer each: those of `kernelprop.layers`, on what one device holds."""

from functools import singledispatch
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from kernelprop.activations import Activation
from kernelprop.attention.dense import Dense
from kernelprop.attention.identity import Identity
from kernelprop.attention.layer import AttentionLayer, mean_over_heads, over_heads
from kernelprop.layers.block import Block, is_at
from kernelprop.layers.gated_mlp import GatedMLP
from kernelprop.layers.mlp import MLP
from kernelprop.layers.norm import Norm, inverse_scale
from kernelprop.layers.residual import Weights
from kernelprop.row_sharded.collectives import gathered, on_own_diagonal, own, ring_product, transposed
from kernelprop.row_sharded.row_kernel import RowKernel, row_congruence, split_rows

# Entries of a block of rows that an activation's map works on at a time.
ENTRIES = 1 << 22


def block_rows(block: Block, kernel: RowKernel) -> RowKernel:
    """Take a kernel's rows through one block; the order of its sublayers is that of `kernelprop.layers.block`."""
    how, weights = block.norm, block.residual
    if block.parallel:
        inside = _normed(how, kernel, "pre")
        total = _residual(weights and weights.attention, kernel, _attention_branch(block, inside))
        if block.mlp is not None:
            branch = mlp_rows(block.mlp, inside)
            total = total.plus(branch if weights is None else branch.scaled(weights.mlp[1] ** 2))
        return _normed(how, total, "post")
    branch = _attention_branch(block, _normed(how, kernel, "pre"))
    middle = _normed(how, _residual(weights and weights.attention, kernel, branch), "post")
    if block.mlp is None:
        return middle
    branch = mlp_rows(block.mlp, _normed(how, middle, "pre"))
    return _normed(how, _residual(weights and weights.mlp, middle, branch), "post")


def norm_rows(norm: Norm, kernel: RowKernel) -> RowKernel:
    """``Σ_ij / sqrt((q_i + ε)(q_j + ε))``."""
    scale = inverse_scale(norm, kernel.diagonal())
    rest = kernel.rest * (own(scale, len(kernel.rest))[:, None] * scale[None, :])
    return row_congruence(kernel, rest, scale[None], (scale * kernel.cross)[None])


@singledispatch
def attention_rows(layer: Any, kernel: RowKernel) -> RowKernel:
    """``mean_h A_h Σ A_hᵀ``. One kind of attention, one registration."""
    raise ValueError(f"attention: {type(layer).__name__} can't be followed by rows; use given or structured attention")


@attention_rows.register
def structured(layer: AttentionLayer, kernel: RowKernel) -> RowKernel:
    """``A`` acts along the rows, which need no other device, then along those of the transpose."""

    def one_head(one: AttentionLayer, rows: Array) -> Array:
        return one.act(transposed(one.act(rows)))

    return _acted(over_heads(_act, layer, _vectors(kernel)), mean_over_heads(one_head, layer, kernel.rest), kernel)


@attention_rows.register
def given(layer: Dense, kernel: RowKernel) -> RowKernel:
    """``A``'s own rows go round twice: ``R Aᵀ``, and ``A`` by what came out, transposed."""

    def vectors(one: Dense, both: Array) -> Array:
        return gathered(jnp.matmul(both, jnp.asarray(one.entries, both.dtype).T, precision=lax.Precision.HIGHEST))

    def one_head(one: Dense, rows: Array) -> Array:
        matrix = jnp.asarray(one.entries, rows.dtype)
        # R is symmetric: (R Aᵀ)ᵀ = A R, whose rows are acted on again.
        return ring_product(transposed(ring_product(rows, matrix)), matrix)

    return _acted(over_heads(vectors, layer, _vectors(kernel)), mean_over_heads(one_head, layer, kernel.rest), kernel)


@attention_rows.register
def untouched(layer: Identity, kernel: RowKernel) -> RowKernel:
    """``A = I``."""
    return kernel


@singledispatch
def mlp_rows(mlp: Any, kernel: RowKernel) -> RowKernel:
    """The dual kernel of an MLP. One kind of MLP, one registration."""
    raise ValueError(f"mlp: {type(mlp).__name__} can't be followed by rows; use kp.MLP or kp.GatedMLP")


@mlp_rows.register
def plain(mlp: MLP, kernel: RowKernel) -> RowKernel:
    """``Σ_ij ← σ₂² E[φ(u)φ(v)] + b₂``."""
    through = _dual_rows(mlp.activation, mlp.gain_in**2 * kernel.join() + mlp.bias_in, _variances(mlp, kernel))
    return split_rows(mlp.gain_out**2 * through).shifted(mlp.bias_out)


@mlp_rows.register
def gated(mlp: GatedMLP, kernel: RowKernel) -> RowKernel:
    """``Σ ← σ₂² K ∘ σ_g² Σ``."""
    rows = kernel.join()
    through = _dual_rows(mlp.activation, mlp.gain_in**2 * rows, mlp.gain_in**2 * kernel.diagonal())
    return split_rows(mlp.gain_out**2 * through * (mlp.gain_gate**2 * rows))


def _variances(mlp: MLP, kernel: RowKernel) -> Float[Array, "T"]:
    return mlp.gain_in**2 * kernel.diagonal() + mlp.bias_in


def _dual_rows(activation: Activation, matrix: Float[Array, "rows T"], q: Float[Array, "T"]) -> Float[Array, "rows T"]:
    """``K(q_i, q_j, c_ij)`` of these rows, some at a time, the diagonal exact."""
    count, length = matrix.shape
    scale = jnp.where(q > 0, lax.rsqrt(jnp.where(q > 0, q, jnp.ones_like(q))), 0.0)
    mine, at_once = own(q, count), max(1, min(count, ENTRIES // length))

    def some(start: Array, filled: Array) -> Array:
        # The last rows overlap those before where their number does not divide evenly.
        first = jnp.minimum(start * at_once, count - at_once)
        here, rows = (lax.dynamic_slice_in_dim(x, first, at_once) for x in (mine, matrix))
        own_scale = lax.dynamic_slice_in_dim(own(scale, count), first, at_once)
        c = jnp.clip(rows * own_scale[:, None] * scale[None, :], -1.0, 1.0)
        across, down = jnp.broadcast_to(here[:, None], c.shape), jnp.broadcast_to(q[None, :], c.shape)
        return lax.dynamic_update_slice_in_dim(filled, activation.dual(across, down, c), first, 0)

    off = jax.lax.fori_loop(0, -(-count // at_once), some, jnp.zeros_like(matrix))
    return on_own_diagonal(off, activation.second_moment(mine))


def _normed(how: Norm | None, kernel: RowKernel, place: str) -> RowKernel:
    return norm_rows(how, kernel) if how is not None and is_at(how, place) else kernel


def _residual(weights: Weights | None, skip: RowKernel, branch: RowKernel) -> RowKernel:
    if weights is None:
        return branch
    alpha, beta = weights
    return skip.scaled(alpha**2).plus(branch.scaled(beta**2))


def _attention_branch(block: Block, kernel: RowKernel) -> RowKernel:
    branch = attention_rows(block.attention, kernel)
    return branch if block.gains is None else branch.scaled((block.gains.value * block.gains.output) ** 2)


def _vectors(kernel: RowKernel) -> Float[Array, "2 T"]:
    return jnp.stack([jnp.ones_like(kernel.cross), kernel.cross])


def _act(one: AttentionLayer, both: Array) -> Array:
    return one.act(both)


def _acted(acted: Array, rest: Array, kernel: RowKernel) -> RowKernel:
    acted = acted.reshape(-1, 2, acted.shape[-1])
    return row_congruence(kernel, rest, acted[:, 0], acted[:, 1])
