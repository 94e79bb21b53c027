"""A map over the entries of a matrix, a few rows at a time."""

from collections.abc import Callable

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

# Measured: any from 2^12 to 2^18 costs the same.
ENTRIES = 1 << 16

EntryMap = Callable[[Float[Array, "rows 1"], Float[Array, "rows T"]], Array]


def in_row_blocks(function: EntryMap, q: Float[Array, " R"], c: Float[Array, "R T"]) -> Float[Array, "R T"]:
    """``function(q_i, c_ij)`` for every row ``i``; on a processor in a loop over blocks of rows.

    As one expression over the whole matrix XLA would make it part of whatever reads its entries, once for every
    reader: a layer whose result is read six times would compute (and compile) its arc-cosines six times. What a loop
    has written is read. On an accelerator, where a block is too small to be worth a launch, it stays one expression.
    """

    def whole(q: Array, c: Array) -> Array:
        return function(q[:, None], c)

    def blocks(q: Array, c: Array) -> Array:
        return _blocks(function, q, c)

    return lax.platform_dependent(q, c, cpu=blocks, default=whole)


def _blocks(function: EntryMap, q: Array, c: Array) -> Array:
    length = len(q)
    rows = _rows(length, c.shape[1])
    count = -(-length // rows)
    more = count * rows - length
    q, c = jnp.pad(q, (0, more), mode="edge"), jnp.pad(c, ((0, more), (0, 0)))

    def block(k: Array, entries: Array) -> Array:
        # Written where it was read: the map takes no second matrix.
        start = k * rows
        mine, here = (lax.dynamic_slice_in_dim(x, start, rows) for x in (q, entries))
        return lax.dynamic_update_slice_in_dim(entries, function(mine[:, None], here), start, 0)

    return lax.fori_loop(0, count, block, c)[:length]


def _rows(length: int, columns: int) -> int:
    """The rows of a block: a divisor of their number if there is one of about the wanted size.

    At least two blocks: a loop of one step is none to XLA.
    """
    most = max(1, min(-(-length // 2), ENTRIES // columns))
    return next((rows for rows in range(most, most // 2, -1) if length % rows == 0), most)
