"""What happened to the signal, in a sentence."""

from typing import TYPE_CHECKING

from kernelprop.diagnosis.collapse import CRITERION, collapsed_since, digits

if TYPE_CHECKING:
    from kernelprop.results import Evolution

__all__ = ["CRITERION", "verdict"]


def verdict(evolution: "Evolution") -> str:
    """Say whether the rank collapses, from which layer on, and what the diagonal does."""
    import numpy as np

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
    import numpy as np

    correlation, residual = evolution.mean_correlation[batch], evolution.rank_residual[batch]
    finite = np.isfinite(evolution.diagonal[batch]).all(-1)
    if not finite.all():
        since = int(np.argmin(finite))
        return f"overflows from layer {since} on: its diagonal is beyond the range of {evolution.diagonal.dtype}"
    if evolution.undefined[batch][-1] or not np.isfinite(residual[-1]):
        return f"leaves a position without a signal after layer {evolution.layers}: its correlation is undefined"
    if evolution.length == 1:
        return "acts on one position, which has nothing to agree with"
    since = _collapsed_since(evolution, batch)
    where = f"after layer {evolution.layers} ({digits(correlation[0])} at the input)"
    numbers = f"mean correlation {digits(correlation[-1])} {where}, rank residual {residual[-1]:.3g}"
    if since is None:
        deed = "keeps the positions apart" if residual[-1] > residual[0] / 2 else "draws the positions together"
        return f"{deed}: {numbers}{_diagonal(evolution, batch)}"
    if since == 0:
        return f"starts from a kernel that is collapsed already: {numbers}{_diagonal(evolution, batch)}"
    return f"collapses it: {numbers}; collapsed from layer {since} on{_diagonal(evolution, batch)}"


def _collapsed_since(evolution: "Evolution", batch: tuple[int, ...]) -> int | None:
    return collapsed_since(evolution.mean_correlation[batch], evolution.rank_residual[batch])


def _diagonal(evolution: "Evolution", batch: tuple[int, ...]) -> str:
    """What the diagonal does up to the last residual sum: behind a final norm it is 1 whatever came before."""
    from kernelprop.diagnosis.diagonal import FACTOR
    from kernelprop.diagnosis.stream import stream_of

    stream = stream_of(evolution)
    diagonal, end = stream.diagonal[batch], f" {stream.end}" if stream.final else ""
    first, last = (float(diagonal[depth].max()) for depth in (0, -1))
    if first <= 0 or 1 / FACTOR < last / first < FACTOR:
        return ""
    return f"; the diagonal {'grows' if last > first else 'shrinks'} from {first:.3g} to {last:.3g}{end}"
