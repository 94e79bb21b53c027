"""A remark on given attention whose rows are no shares: perhaps logits that no softmax has seen."""

from typing import Any

import numpy as np

from kernelprop import door
from kernelprop.attention.block_diagonal import BlockDiagonal
from kernelprop.attention.dense import Dense
from kernelprop.attention.mixture import Mixture
from kernelprop.attention.stack import AttentionStack

SUBJECT = "given attention"
# Rows that a softmax made in half precision miss 1 by about this much.
ROUNDING = 1e-3


def rows_remark(matrices: Any) -> str | None:
    """One line on rows that don't sum to 1 and on negative entries; None where there are none.

    Both are legal. Rows of constructions sum to what the construction says: ask only about matrices that were given.

    Args:
        matrices: ``(T, T)``, ``(L, T, T)`` or ``(L, H, T, T)``.

    >>> rows_remark([[1.0, 0.0], [0.5, 0.5]]) is None
    True
    >>> for part in str(rows_remark([[3.0, -1.0], [0.5, 0.5]])).split("; "):
    ...     print(part)
    given attention: 1 of 2 rows does not sum to 1, the largest deviation is 1 (position 0)
    1 entry is negative
    raw logits need a softmax first
    """
    array = np.asarray(matrices, np.float64)
    sums = array.sum(-1)
    off = np.abs(sums - 1)
    beyond, negative = int((off > ROUNDING).sum()), int((array < 0).sum())
    said = []
    if beyond:
        index = tuple(int(i) for i in np.unravel_index(int(off.argmax()), off.shape))
        where = door.place((*("layer", "head")[: array.ndim - 2], "position"), index)
        verb = "does" if beyond == 1 else "do"
        said.append(
            f"{beyond} of {off.size} rows {verb} not sum to 1, the largest deviation is {off[index]:.3g} ({where})"
        )
    if negative:
        said.append(f"{negative} {'entry is' if negative == 1 else 'entries are'} negative")
    return f"{SUBJECT}: {'; '.join(said)}; raw logits need a softmax first" if said else None


def rows_notes(matrices: Any) -> tuple[str, ...]:
    """`rows_remark` as notes: none of matrices that nothing is to be said of, or of None."""
    remark = None if matrices is None else rows_remark(matrices)
    return () if remark is None else (remark,)


def given_matrices(operator: Any) -> np.ndarray | None:
    """The matrices that were given to an operator, below what was put on top; None for a structure."""
    layer = operator.layers if isinstance(operator, AttentionStack) else operator
    while isinstance(layer, BlockDiagonal | Mixture):
        layer = layer.inner
    return layer.matrix() if isinstance(layer, Dense) else None
