"""Whether the variance of the positions grows or shrinks from layer to layer."""

from collections.abc import Iterator

import numpy as np

from kernelprop.diagnosis.finding import Finding
from kernelprop.diagnosis.stream import Stream

# What a position's variance may be multiplied or divided by on its way.
FACTOR = 10.0


def diagonal_findings(stream: Stream) -> Iterator[Finding]:
    """Growth and shrinkage beyond a factor of 10, by the position where it is worst.

    Averaging takes variance away in the first layer, once and without harm: shrinkage counts from depth 1. Where
    norms hold the branches' input at 1, the residual stream grows by equal steps (``1 + 2 l`` of plain skips), which
    is worth knowing; what keeps its pace over the second half of the depth, so that it would pass the factor again,
    is ill there too. A final norm is left out: the variance 1 behind it says nothing of the stream.
    """
    diagonal, layers = stream.diagonal, stream.layers
    if not np.all(np.isfinite(diagonal)):
        first = int(np.flatnonzero(~np.isfinite(diagonal).all(-1))[0])
        yield Finding("growth", f"overflows: the diagonal has no finite value from depth {first} on", (first, layers))
        return
    for kind, (start, sign) in _KINDS.items():
        worst, total, lasting = _change(diagonal, start, sign)
        if total >= np.log(FACTOR):
            ill = not stream.normed or lasting >= float(np.log(FACTOR))
            yield Finding(kind, _words(stream, start, worst), (start + 1, layers), ill)


def diagonal_factors(stream: Stream) -> dict[str, float]:
    """By what factor the diagonal grows and shrinks where it is worst: the numbers that decide whether it is ill.

    With norms it is the smaller of the factor and of what the pace of the second half would make over all layers.
    """
    if not np.all(np.isfinite(stream.diagonal)):
        return {"growth": float("inf")}
    found = {}
    for kind, (start, sign) in _KINDS.items():
        _, total, lasting = _change(stream.diagonal, start, sign)
        found[kind] = float(np.exp(min(total, lasting) if stream.normed else total))
    return found


# The depth from which a change counts, and its sign.
_KINDS = {"growth": (0, 1.0), "shrinkage": (1, -1.0)}


def _change(diagonal: np.ndarray, start: int, sign: float) -> tuple[int, float, float]:
    """The worst position, the logarithm of its change, and that of the change at the pace of the second half."""
    layers = len(diagonal) - 1
    total = sign * _log_ratio(diagonal, start)
    worst = int(np.argmax(total))
    lasting = sign * _log_ratio(diagonal, layers // 2)[worst] * layers / (layers - layers // 2)
    return worst, float(total[worst]), float(lasting)


def _log_ratio(diagonal: np.ndarray, start: int) -> np.ndarray:
    """``log(q_L / q_start)`` of every position; 0 where one of them is 0, which is told as silence."""
    if start >= len(diagonal) - 1:
        return np.zeros(diagonal.shape[-1])
    first, last = diagonal[start], diagonal[-1]
    alive = (first > 0) & (last > 0)
    return np.where(alive, np.log(np.where(alive, last, 1.0) / np.where(alive, first, 1.0)), 0.0)


def _words(stream: Stream, start: int, worst: int) -> str:
    diagonal = stream.diagonal
    first, last = float(diagonal[start, worst]), float(diagonal[-1, worst])
    factor = (last / first) ** (1 / (stream.layers - start))
    whole = np.ptp(_log_ratio(diagonal, start)) < np.log(2)
    who = "the diagonal" if whole else f"the diagonal of position {worst}"
    verb = "grows" if last > first else "shrinks"
    span = f"from {first:.3g}{' after layer 1' if start else ''} to {last:.3g} {stream.end}"
    return f"{who} {verb} by a factor {factor:.3g} a layer, {span}"
