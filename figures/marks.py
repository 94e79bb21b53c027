"""Marks that several figures share."""

from typing import TYPE_CHECKING, Any

import numpy as np

from kernelprop.plotting.style import GREY

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_POINTS = 16


def measured(axes: "Axes", x: Any, mean: Any, stderr: Any, colour: str, label: str = "_") -> None:
    """Points with bars of one standard error; of many every few, so that the line behind them is seen."""
    x, mean, stderr = (np.asarray(values, float) for values in (x, mean, stderr))
    known = np.isfinite(mean)
    every = max(1, int(np.ceil(len(x) / MOST_POINTS)))
    chosen = np.flatnonzero(known)[::every]
    axes.errorbar(
        x[chosen],
        mean[chosen],
        stderr[chosen],
        fmt="o",
        color=colour,
        markerfacecolor="white",
        markersize=3.5,
        markeredgewidth=0.9,
        elinewidth=0.9,
        zorder=3,
        label=label,
    )


def kinds(theory: str = "theory", sampled: str = "sampled networks, ± 1 standard error") -> list[Any]:
    """What a legend shows for a line and for points."""
    from matplotlib.lines import Line2D

    line = Line2D([], [], color=GREY, label=theory)
    points = Line2D([], [], color=GREY, marker="o", markerfacecolor="white", linestyle="", label=sampled)
    return [line, points]


def bare(axes: "Axes") -> None:
    """An image without ticks and frame."""
    axes.set_xticks([])
    axes.set_yticks([])
    for side in axes.spines.values():
        side.set_visible(False)


def few_ticks(axis: Any) -> None:
    """Ticks of a logarithmic axis of one or two decades at 1, 2, 5, written as they are."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def plain_ticks(axis: Any, values: Any) -> None:
    """Ticks of a logarithmic axis at these values, written as they are."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    axis.set_major_locator(FixedLocator(list(values)))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
