"""``A S Aᵀ`` of a semiseparable ``A`` in one pass over the kernel, block of rows by block of rows."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from kernelprop.attention.decayed_prefix import block_length, powers, strictly_triangular


class RowBlocks(NamedTuple):
    """A semiseparable matrix cut into blocks of rows, with what a block takes from and hands to the others.

    For the rows ``x`` of a block and the carried sums ``c (rank, …)``: ``y = inside x + received c`` and
    ``c ← handed x + decay c``. Shapes: ``(blocks, size + rank, size + rank)``, the four parts in one matrix, so
    that a block costs one small product.
    """

    operators: Float[Array, "blocks size_and_rank size_and_rank"]
    rank: int


def row_blocks(
    diagonal: Float[Array, "T"],
    left: Float[Array, "rank T"],
    right: Float[Array, "rank T"],
    log_decay: Float[Array, "rank"],
) -> RowBlocks:
    """Cut a semiseparable matrix into blocks of at most `block_length` rows, zeros after the last row."""
    rank, length = left.shape
    size = block_length(length)
    count = -(-length // size)

    def cut(x: Array) -> Array:
        return jnp.pad(x, ((0, 0), (0, count * size - length))).reshape(-1, count, size)

    left, right = cut(left), cut(right)
    power = jax.vmap(lambda decay: powers(decay, size))(log_decay)
    triangular = jax.vmap(strictly_triangular)(power)
    inside = jnp.einsum("rbi,rbj,rji->bij", left, right, triangular, precision=lax.Precision.HIGHEST)
    inside += cut(diagonal[None])[0][:, :, None] * jnp.eye(size, dtype=diagonal.dtype)[None]
    received = jnp.einsum("rbi,ri->bir", left, power)
    handed = jnp.einsum("rbj,rj->brj", right, power[:, ::-1])
    decay = jnp.broadcast_to(jnp.diag(jnp.exp(size * log_decay)), (count, rank, rank))
    return RowBlocks(jnp.block([[inside, received], [handed, decay]]), rank)


def sandwich_by_blocks(
    blocks: RowBlocks, act: Callable[[Array], Array], kernel: Float[Array, "T T"]
) -> Float[Array, "T T"]:
    """``A S Aᵀ``: each block of rows of ``A S``, then ``act`` along the rows while they are at hand."""
    return _scan(blocks.operators, blocks.rank, act, kernel, reverse=False)


def sandwich_by_blocks_transposed(
    blocks: RowBlocks, act_transposed: Callable[[Array], Array], kernel: Float[Array, "T T"]
) -> Float[Array, "T T"]:
    """``Aᵀ S A``: the adjoint recurrence, from the last block to the first."""
    return _scan(jnp.swapaxes(blocks.operators, -1, -2), blocks.rank, act_transposed, kernel, reverse=True)


def _scan(
    operators: Array, rank: int, act: Callable[[Array], Array], kernel: Array, *, reverse: bool
) -> Float[Array, "T T"]:
    length = kernel.shape[0]
    count, size = operators.shape[0], operators.shape[-1] - rank

    def step(carried: Array, block: tuple[Array, Array]) -> tuple[Array, Array]:
        operator, rows = block
        product = jnp.matmul(operator, jnp.concatenate([rows, carried]), precision=lax.Precision.HIGHEST)
        return product[size:], act(product[:size])

    rows = jnp.pad(kernel, ((0, count * size - length), (0, 0))).reshape(count, size, length)
    carried = jnp.zeros((rank, length), kernel.dtype)
    _, rows = lax.scan(step, carried, (operators, rows), reverse=reverse)
    return rows.reshape(count * size, length)[:length]
