"""``A S`` of a semiseparable ``A``, all blocks of rows at once."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from kernelprop.attention.decayed_prefix import (
    block_length,
    decayed_prefix_of_rows,
    decayed_suffix_of_rows,
    powers,
    strictly_triangular,
)


class RowBlocks(NamedTuple):
    """A semiseparable matrix cut into blocks of rows, with what a block takes from and hands to the others.

    For the rows ``x`` of a block: ``y = inside x + received c``, where the ``c (rank, …)`` are decayed sums of what
    the blocks before handed on, ``handed x``. So ``A S`` costs one small product a block, and the sums over blocks.
    """

    inside: Float[Array, "blocks size size"]
    received: Float[Array, "blocks size rank"]
    handed: Float[Array, "blocks rank size"]
    log_decay: Float[Array, "rank"]


def row_blocks(
    diagonal: Float[Array, "T"],
    left: Float[Array, "rank T"],
    right: Float[Array, "rank T"],
    log_decay: Float[Array, "rank"],
) -> RowBlocks:
    """Cut a semiseparable matrix into blocks of `block_length` rows, zeros after the last row."""
    length = left.shape[-1]
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
    return RowBlocks(inside, received, handed, size * log_decay)


def act_on_rows(blocks: RowBlocks, x: Float[Array, "T d"]) -> Float[Array, "T d"]:
    """``A X``."""
    rows = _cut(blocks, x)
    sums = _product(blocks.handed, rows)
    return _whole(blocks.inside, blocks.received, rows, _over_ranks(decayed_prefix_of_rows, blocks, sums), len(x))


def act_on_rows_transposed(blocks: RowBlocks, x: Float[Array, "T d"]) -> Float[Array, "T d"]:
    """``Aᵀ X``: what a block received it hands on, towards the first."""
    rows = _cut(blocks, x)
    sums = _product(_transposed(blocks.received), rows)
    carried = _over_ranks(decayed_suffix_of_rows, blocks, sums)
    return _whole(_transposed(blocks.inside), _transposed(blocks.handed), rows, carried, len(x))


def _cut(blocks: RowBlocks, x: Array) -> Float[Array, "blocks size d"]:
    count, size = blocks.inside.shape[:2]
    return jnp.pad(x, ((0, count * size - len(x)), (0, 0))).reshape(count, size, -1)


def _over_ranks(
    function: Callable[[Array, Array], Array], blocks: RowBlocks, sums: Float[Array, "blocks rank d"]
) -> Float[Array, "blocks rank d"]:
    return jax.vmap(function, in_axes=(1, 0), out_axes=1)(sums, blocks.log_decay)


def _whole(inside: Array, received: Array, rows: Array, carried: Array, length: int) -> Array:
    # Rank by rank elementwise, so that adding what was carried is one pass with no product of its own.
    total = _product(inside, rows)
    for rank in range(carried.shape[1]):
        total += received[:, :, rank, None] * carried[:, rank, None, :]
    return total.reshape(-1, rows.shape[-1])[:length]


def _transposed(x: Array) -> Array:
    return jnp.swapaxes(x, -1, -2)


def _product(left: Array, right: Array) -> Array:
    return jnp.matmul(left, right, precision=lax.Precision.HIGHEST)
