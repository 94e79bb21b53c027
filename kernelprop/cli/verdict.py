"""What happened to the signal, in a sentence."""

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from kernelprop.results import Evolution

RESIDUAL, CORRELATION = 0.1, 0.99
CRITERION = f"collapsed = mean correlation at least {CORRELATION}, or rank residual at most {RESIDUAL}"
GROWTH = 10.0


def verdict(evolution: "Evolution") -> str:
    """Say whether the rank collapses, from which layer on, and what the diagonal does."""
    batches = list(np.ndindex(*evolution.mean_correlation.shape[:-1]))
    who = _subject(evolution)
    if len(batches) == 1:
        return f"{who} {_one(evolution, batches[0])}"
    since = [_collapsed_since(evolution, batch) for batch in batches]
    number = sum(depth is not None for depth in since)
    return f"{who} leaves {number} of {len(batches)} kernels collapsed after layer {evolution.layers}"


def _subject(evolution: "Evolution") -> str:
    if any(getattr(evolution.description, part, None) is not None for part in ("mlp", "norm")):
        return "the network"
    residual = getattr(evolution.description, "residual", None)
    return "attention alone" if residual is None else "attention with its residual branch"


def _one(evolution: "Evolution", batch: tuple[int, ...]) -> str:
    correlation, residual = evolution.mean_correlation[batch], evolution.rank_residual[batch]
    if evolution.undefined[batch][-1] or not np.isfinite(residual[-1]):
        return f"leaves a position without a signal after layer {evolution.layers}: its correlation is undefined"
    if evolution.length == 1:
        return "acts on one position, which has nothing to agree with"
    since = _collapsed_since(evolution, batch)
    where = f"after layer {evolution.layers} ({_digits(correlation[0])} at the input)"
    numbers = f"mean correlation {_digits(correlation[-1])} {where}, rank residual {residual[-1]:.3g}"
    if since is None:
        deed = "keeps the positions apart" if residual[-1] > residual[0] / 2 else "draws the positions together"
        return f"{deed}: {numbers}{_diagonal(evolution, batch)}"
    if since == 0:
        return f"starts from a kernel that is collapsed already: {numbers}{_diagonal(evolution, batch)}"
    return f"collapses it: {numbers}; collapsed from layer {since} on{_diagonal(evolution, batch)}"


def _collapsed_since(evolution: "Evolution", batch: tuple[int, ...]) -> int | None:
    """The depth from which on the kernel is collapsed to the end; None if it isn't in the end."""
    collapsed = evolution.mean_correlation[batch] >= CORRELATION
    collapsed |= evolution.rank_residual[batch] <= RESIDUAL
    if not collapsed[-1]:
        return None
    healthy = np.flatnonzero(~collapsed)
    return int(healthy[-1]) + 1 if len(healthy) else 0


def _diagonal(evolution: "Evolution", batch: tuple[int, ...]) -> str:
    first, last = (float(evolution.diagonal[batch][depth].max()) for depth in (0, -1))
    if first <= 0 or 1 / GROWTH < last / first < GROWTH:
        return ""
    return f"; the diagonal {'grows' if last > first else 'shrinks'} from {first:.3g} to {last:.3g}"


def _digits(correlation: float) -> str:
    """Four digits; near 1, where all would be nines, the distance from 1."""
    if correlation < 0.9995:
        return f"{correlation + 0.0:.4f}".replace("-0.0000", "0.0000")
    if correlation < 1 - 1e-6:
        return f"{correlation:.7f}"
    return f"1 - {1 - correlation:.1e}" if correlation < 1 - 1e-14 else "1 (to rounding)"
