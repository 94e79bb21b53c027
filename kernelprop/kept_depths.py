"""Which depths' kernels a run returns, and whether they fit in memory."""

from typing import Any, NamedTuple

import numpy as np

from kernelprop import door, memory


class KeptDepths(NamedTuple):
    """The depths that are kept, and where the scan writes each depth's kernel.

    ``slots (L+1,)`` is the slot of every depth and ``written (L+1,)`` whether it writes: a depth that isn't kept
    points at a slot that it leaves alone.
    """

    depths: np.ndarray
    slots: np.ndarray
    written: np.ndarray
    last_only: bool


def kept_depths(keep: Any, depth: int, length: int, bytes_an_entry: int) -> KeptDepths:
    """Read ``keep`` and refuse what can't fit.

    Args:
        keep: ``"all"``, ``"last"``, a depth, or depths among ``0…L``.
        depth: the number of layers ``L``.
        length: the number of positions ``T``.
        bytes_an_entry: the size of one entry, times the number of kernels in the batch.

    Raises:
        ValueError: for depths outside ``0…L``, and with the size and the ``keep`` that fits.
    """
    depths = _depths(keep, depth)
    _refuse_if_too_large(len(depths), length * length * bytes_an_entry)
    every = np.arange(depth + 1)
    written = np.isin(every, depths)
    slots = np.minimum(np.searchsorted(depths, every), len(depths) - 1)
    return KeptDepths(depths, slots, written, len(depths) == 1 and depths[0] == depth)


def _depths(keep: Any, depth: int) -> np.ndarray:
    if isinstance(keep, str):
        if keep not in ("all", "last"):
            raise ValueError(f"keep: {keep!r} is unknown; use 'all', 'last' or depths among 0…{depth}")
        return np.arange(depth + 1) if keep == "all" else np.array([depth])
    numbers = [door.count(k, "keep", least=0) for k in np.atleast_1d(np.asarray(keep, object))]
    if not numbers:
        raise ValueError("keep: no depth is named; use 'all', 'last' or depths")
    if max(numbers) > depth:
        raise ValueError(f"keep: depth {max(numbers)} is outside 0…{depth}")
    return np.unique(np.array(numbers))


# A layer needs a handful of kernels to work in beside those that are kept.
TO_WORK_IN = 4


def _refuse_if_too_large(count: int, size: int) -> None:
    available = memory.available_bytes()
    needed = (count + TO_WORK_IN) * size
    if available is None or needed <= available:
        return
    fits = int(available // size) - TO_WORK_IN
    last = "keep='last' (--keep last)"
    advice = f"not even {last} fits: shorten T"
    if fits >= 1:
        advice = f"keep at most {fits} depth{'s' * (fits > 1)}, or {last}"
    raise ValueError(
        f"keep: {count} kernels of {memory.in_words(size)} need {memory.in_words(count * size)}, with {TO_WORK_IN} "
        f"more to work in {memory.in_words(needed)}, and {memory.in_words(available)} are available; {advice}"
    )
