"""Whether the rank collapses, and from which depth on."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from kernelprop.diagnosis.finding import Finding

if TYPE_CHECKING:
    import numpy as np

    from kernelprop.results import Evolution

RESIDUAL, CORRELATION = 0.1, 0.99
# How many gaps between neighbours near 1 are no correlation yet.
ROUNDINGS = 8
CRITERION = f"collapsed = mean correlation at least {CORRELATION}, or rank residual at most {RESIDUAL}"


def collapsed_since(correlation: "np.ndarray", residual: "np.ndarray") -> int | None:
    """The depth from which on a kernel is collapsed to the end; None if it isn't in the end.

    Args:
        correlation: the mean correlation at depths ``0…L``, ``(L+1,)``.
        residual: the rank residual, likewise.

    >>> from numpy import array
    >>> collapsed_since(array([0.0, 0.5, 0.995, 0.999]), array([1.0, 0.7, 0.2, 0.1]))
    2
    """
    import numpy as np

    collapsed = (correlation >= CORRELATION) | (residual <= RESIDUAL)
    if not collapsed[-1]:
        return None
    healthy = np.flatnonzero(~collapsed)
    return int(healthy[-1]) + 1 if len(healthy) else 0


def collapse_findings(evolution: "Evolution") -> Iterator[Finding]:
    """The collapse of one kernel's evolution, and positions that lose their signal."""
    yield from _silence(evolution)
    since = collapsed_since(evolution.mean_correlation, evolution.rank_residual)
    if since is None or evolution.length == 1:
        return
    layers = evolution.layers
    numbers = (
        f"mean correlation {digits(float(evolution.mean_correlation[-1]))} and rank residual "
        f"{evolution.rank_residual[-1]:.3g} after layer {layers}"
    )
    if since == 0:
        yield Finding("collapse", f"is given a kernel that is collapsed already: {numbers}", (1, layers), ill=False)
    else:
        yield Finding("collapse", f"collapses by layer {since}: {numbers}", (since, layers))


def _silence(evolution: "Evolution") -> Iterator[Finding]:
    """A position of zero norm has no correlation with anything; one of the input's may be padding, all are none."""
    import numpy as np

    silent = evolution.diagonal <= 0
    for depth in np.flatnonzero(silent.any(-1))[:1].tolist():
        where = ", ".join(map(str, np.flatnonzero(silent[depth])[:8].tolist()))
        ill = depth > 0 or bool(silent[0].all())
        since = "at the input" if depth == 0 else f"from layer {depth} on"
        yield Finding("silence", f"has no signal at position {where} {since}", (depth, evolution.layers), ill=ill)


def unless_rounding(correlation: float, dtype: str = "float64") -> float:
    """A mean correlation as it is printed: 0 where it is no more than the rounding of a mean of terms up to 1.

    >>> unless_rounding(1.9e-17), unless_rounding(-3e-8, "float32"), unless_rounding(-3e-8)
    (0.0, 0.0, -3e-08)
    """
    import numpy as np

    return 0.0 if abs(correlation) <= ROUNDINGS * float(np.finfo(dtype).eps) else correlation


def digits(correlation: float) -> str:
    """Four digits; near 1, where all would be nines, the distance from 1.

    >>> digits(0.5), digits(0.99999), digits(1 - 1e-9)
    ('0.5000', '0.9999900', '1 - 1.0e-09')
    """
    if not correlation >= 0.9995:
        return f"{correlation + 0.0:.4f}".replace("-0.0000", "0.0000")
    if correlation < 1 - 1e-6:
        return f"{correlation:.7f}"
    return f"1 - {1 - correlation:.1e}" if correlation < 1 - 1e-14 else "1 (to rounding)"
