"""Lines on a logarithmic axis that survive zeros, NaN and what rounding hides."""

from typing import TYPE_CHECKING, Any

import numpy as np

from kernelprop.plotting.style import GREY, MANY

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LOWEST = 1e-16  # where the axis ends when nothing on it is positive
NORMAL = np.finfo(np.float64)  # what lies outside its normal numbers has no place on any axis
ROW = 0.045  # height of a row of marks at the foot, in axes
FLOOR_MARK: dict[str, Any] = {"marker": "v", "markersize": 4, "markerfacecolor": "white", "zorder": 3}


def log_line(
    axes: "Axes",
    depth: np.ndarray,
    values: np.ndarray,
    *,
    hidden: np.ndarray,
    stderr: np.ndarray | None = None,
    **style: Any,
) -> np.ndarray:
    """Draw one line, and return the depths whose value has no place on the axis: for ``floor_marks``.

    NaN leaves a gap. So does a zero, a value below the normal numbers, and one that ``hidden`` marks as lost in
    rounding.
    """
    floored = (hidden | (values < NORMAL.tiny)) & ~np.isnan(values)
    shown = np.where(floored, np.nan, values)
    # On a long line only the points that no line reaches get a marker.
    marked = np.isfinite(shown) if len(depth) <= MANY else _alone(shown)
    axes.plot(depth, shown, marker="o", markevery=list(np.flatnonzero(marked)), **style)
    if stderr is not None:
        _band(axes, depth, shown, stderr, style.get("color"))
    return depth[floored]


def finish_log_axis(axes: "Axes", rows: list[tuple[np.ndarray, str]], *, top: float | None = None) -> None:
    """Make the vertical axis logarithmic, with finite positive limits whatever was drawn on it.

    Args:
        axes: the axes.
        rows: depths without a place on the axis, and a colour: each is a row of hollow triangles at the foot,
            at the first and last depth of every stretch, with a line between.
        top: what the axis must reach.
    """
    low, high = drawn_exponents(axes) or (np.log10(LOWEST), 0.0)
    high = high if top is None else max(high, float(np.log10(top)))
    low = min(low, high - 1)
    foot = 0.05 + ROW * (len(rows) + 0.6 * bool(rows))
    decades = (high - low) / (0.95 - foot)
    set_log_limits(axes, low - foot * decades, high + 0.05 * decades)
    if rows:
        _shade_foot(axes, ROW * (len(rows) + 0.6))
    for number, (depths, colour) in enumerate(rows):
        _row(axes, depths, ROW * (number + 0.8), colour)


def drawn_exponents(*panels: "Axes") -> tuple[float, float] | None:
    """The common logarithms of the least and the largest positive number that lines of these axes show, if any."""
    lines = [line for axes in panels for line in axes.lines]
    drawn = np.concatenate([[], *(np.asarray(line.get_ydata(), float) for line in lines)])
    positive = drawn[np.isfinite(drawn) & (drawn >= NORMAL.tiny)]
    return (float(np.log10(positive.min())), float(np.log10(positive.max()))) if len(positive) else None


def set_log_limits(axes: "Axes", low: float, high: float) -> None:
    """Make the vertical axis logarithmic from ``10^low`` to ``10^high``, or to where the numbers end."""
    from matplotlib.ticker import FixedLocator, NullLocator

    # Limits of matplotlib's own, and ticks that it tries beyond the limits, overflow near the ends.
    axes.set_autoscaley_on(False)
    axes.set_yscale("log", nonpositive="mask")
    least, most = np.log10(NORMAL.tiny), np.log10(NORMAL.max)
    low, high = max(low, float(least)), min(high, float(most))
    axes.set_ylim(max(10.0**low, NORMAL.tiny), NORMAL.max if high == most else 10.0**high)
    if high + 2 * (high - low) > most:
        step = max(1, int(np.ceil((high - low) / 6)))
        exponents = np.arange(np.ceil(low / step), np.floor(high / step) + 1) * step
        axes.yaxis.set_major_locator(FixedLocator(10.0**exponents))
        axes.yaxis.set_minor_locator(NullLocator())


def floor_handle(label: str) -> Any:
    """Return what a legend shows for the triangles at the foot of an axis."""
    from matplotlib.lines import Line2D

    return Line2D([], [], color=GREY, linewidth=0.8, label=label, **FLOOR_MARK)


def _shade_foot(axes: "Axes", height: float) -> None:
    """Set the foot apart: the triangles there have no value on the scale beside them."""
    from matplotlib.patches import Rectangle

    axes.add_patch(Rectangle((0, 0), 1, height, transform=axes.transAxes, color=GREY, alpha=0.15, linewidth=0))


def _row(axes: "Axes", depths: np.ndarray, height: float, colour: str) -> None:
    for stretch in np.split(depths, np.flatnonzero(np.diff(depths) > 1) + 1):
        ends = stretch[[0, -1]]
        heights = [height, height]
        axes.plot(ends, heights, transform=axes.get_xaxis_transform(), color=colour, linewidth=0.8, **FLOOR_MARK)


def _alone(values: np.ndarray) -> np.ndarray:
    """Points without a neighbour, which a line would not show."""
    known = np.pad(np.isfinite(values), 1)
    return known[1:-1] & ~known[:-2] & ~known[2:]


def _band(axes: "Axes", depth: np.ndarray, values: np.ndarray, stderr: np.ndarray, colour: Any) -> None:
    low = values - stderr
    # Where the band reaches below 0 it runs off the foot of the axis.
    low = np.where(low > 0, low, np.where(np.isnan(low), np.nan, np.finfo(float).tiny))
    axes.fill_between(depth, low, values + stderr, color=colour, alpha=0.2, linewidth=0)
