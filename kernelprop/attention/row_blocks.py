"""``A S`` of a semiseparable ``A``, all blocks of rows at once or those of a panel of rows."""

from collections.abc import Callable
from typing import NamedTuple, Self

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
from kernelprop.attention.row_panels import panel_rows
from kernelprop.precision import full_product


class RowBlocks(NamedTuple):
    """A semiseparable matrix cut into blocks of rows, with what a block takes from and hands to the others.

    For the rows ``x`` of a block: ``y = inside x + received c``, where the ``c (rank, …)`` are decayed sums of what
    the blocks before handed on, ``handed x``. So ``A S`` costs one small product a block, and the sums over blocks.
    """

    inside: Float[Array, "blocks size size"]
    received: Float[Array, "blocks size rank"]
    handed: Float[Array, "blocks rank size"]
    log_decay: Float[Array, "rank"]

    def panel(self, first: Array, rows: int) -> Self:
        """The blocks of the rows from ``first`` on."""
        size = self.inside.shape[1]

        def here(x: Array) -> Array:
            return lax.dynamic_slice_in_dim(x, first // size, -(-rows // size))

        return type(self)(here(self.inside), here(self.received), here(self.handed), self.log_decay)

    def nothing(self, x: Float[Array, "rows d"]) -> Float[Array, "rank d"]:
        """What comes from outside of all blocks."""
        return jnp.zeros((len(self.log_decay), x.shape[1]), x.dtype)


def row_blocks(
    diagonal: Float[Array, "T"],
    left: Float[Array, "rank T"],
    right: Float[Array, "rank T"],
    log_decay: Float[Array, "rank"],
) -> RowBlocks:
    """Cut a semiseparable matrix into blocks of `block_length` rows, zeros after the last row; panels are whole."""
    length = left.shape[-1]
    size, panel = block_length(length), panel_rows(length)
    count = -(-length // panel) * -(-panel // size)

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


def act_on_rows(
    blocks: RowBlocks, x: Float[Array, "rows d"], before: Float[Array, "rank d"] | None
) -> tuple[Float[Array, "rows d"], Float[Array, "rank d"] | None]:
    """``A X``, given what the rows before have handed on, and what is handed on behind; None where these are all."""
    rows = _cut(blocks, x)
    sums = full_product(blocks.handed, rows)
    carried, behind = _over_ranks(_prefix, blocks, sums, before)
    return _whole(blocks.inside, blocks.received, rows, carried, len(x)), behind


def act_on_rows_transposed(
    blocks: RowBlocks, x: Float[Array, "rows d"], behind: Float[Array, "rank d"] | None
) -> tuple[Float[Array, "rows d"], Float[Array, "rank d"] | None]:
    """``Aᵀ X``: what a block received it hands on, towards the first."""
    rows = _cut(blocks, x)
    sums = full_product(_transposed(blocks.received), rows)
    carried, before = _over_ranks(_suffix, blocks, sums, behind)
    return _whole(_transposed(blocks.inside), _transposed(blocks.handed), rows, carried, len(x)), before


def _prefix(sums: Float[Array, "blocks d"], log_decay: Array, before: Array | None) -> tuple[Array, Array | None]:
    """Decayed sums over the blocks before each, and over all of them."""
    carried = decayed_prefix_of_rows(sums, log_decay)
    if before is None:
        return carried, None
    power = powers(log_decay, len(sums) + 1)
    return carried + power[:-1, None] * before[None], _vector_product(power[-2::-1], sums) + power[-1] * before


def _suffix(sums: Float[Array, "blocks d"], log_decay: Array, behind: Array | None) -> tuple[Array, Array | None]:
    """Decayed sums over the blocks behind each, and over all of them."""
    carried = decayed_suffix_of_rows(sums, log_decay)
    if behind is None:
        return carried, None
    power = powers(log_decay, len(sums) + 1)
    return carried + power[-2::-1, None] * behind[None], _vector_product(power[:-1], sums) + power[-1] * behind


def _cut(blocks: RowBlocks, x: Array) -> Float[Array, "blocks size d"]:
    count, size = blocks.inside.shape[:2]
    return jnp.pad(x, ((0, count * size - len(x)), (0, 0))).reshape(count, size, -1)


def _over_ranks(
    function: Callable[[Array, Array, Array | None], tuple[Array, Array | None]],
    blocks: RowBlocks,
    sums: Float[Array, "blocks rank d"],
    outside: Float[Array, "rank d"] | None,
) -> tuple[Float[Array, "blocks rank d"], Float[Array, "rank d"] | None]:
    return jax.vmap(function, in_axes=(1, 0, 0), out_axes=(1, 0))(sums, blocks.log_decay, outside)


def _whole(inside: Array, received: Array, rows: Array, carried: Array, length: int) -> Array:
    # One product for both: a sum behind it would be added up anew by every reader of these rows.
    total = full_product(jnp.concatenate([inside, received], axis=2), jnp.concatenate([rows, carried], axis=1))
    return total.reshape(-1, rows.shape[-1])[:length]


def _transposed(x: Array) -> Array:
    return jnp.swapaxes(x, -1, -2)


def _vector_product(vector: Array, rows: Array) -> Array:
    return full_product(vector[None], rows)[0]
