"""A check's curves as a picture."""

from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.ticker import MaxNLocator

from kernelprop.plotting.style import COLUMN, in_house_style, line_colours, new_figure
from paper_checks.check import Curve, Plot
from paper_checks.family import critical

KEY = "points: measured; lines: predicted; dashed: control"
PNG_DOTS_PER_INCH = 150


@in_house_style
def draw(plot: Plot, title: str, path: Path, draws: int) -> None:
    """Measurements as points with their intervals, predictions as lines, controls dashed; as SVG and as PNG.

    ``path`` ends in ``.svg``; the PNG lies beside it.
    """
    figure = new_figure(COLUMN * 1.3, COLUMN * 0.95)
    axes = figure.add_subplot()
    for curve, colour in zip(plot.curves, line_colours(len(plot.curves)), strict=True):
        _line(axes, curve, colour, draws, plot)
    axes.set_xlabel(plot.x_label)
    axes.set_ylabel(plot.y_label)
    axes.set_title(title)
    _place_ticks(axes, plot)
    if plot.log_y:
        axes.set_yscale("log")
    # Below the axes, where it hides no point.
    figure.legend(title=KEY, title_fontsize=6, fontsize=6.5, loc="outside lower center", ncols=min(3, len(plot.curves)))
    # Text stays text in the SVG: a quarter of the size.
    with matplotlib.rc_context({"svg.fonttype": "none"}):
        figure.savefig(path, format="svg", metadata={"Date": None})
    figure.savefig(path.with_suffix(".png"), format="png", dpi=PNG_DOTS_PER_INCH, metadata={"Software": None})


def _place_ticks(axes, plot: Plot) -> None:
    """On a logarithmic axis at the points themselves: powers of ten are too few, what lies between crowds."""
    places = np.unique(np.concatenate([curve.x for curve in plot.curves]))
    if plot.log_x:
        axes.set_xscale("log")
        axes.set_xticks(places, [f"{place:.3g}" for place in places])
        axes.minorticks_off()
    elif np.all(places == np.round(places)):
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))


def _line(axes, curve: Curve, colour: str, draws: int, plot: Plot) -> None:
    shown = _positive(curve.measured, plot.log_y)
    intervals = None if curve.stderr is None else critical(max(draws, 2)) * curve.stderr
    if intervals is not None and plot.log_y:
        # An interval that reaches below 0 has no lower end on a logarithmic axis.
        intervals = np.stack([np.minimum(intervals, 0.999 * np.abs(curve.measured)), intervals])
    axes.errorbar(curve.x, shown, intervals, fmt="o", color=colour, markersize=2.5, label=curve.name, elinewidth=0.8)
    for values, style in ((curve.predicted, "-"), (curve.control, "--")):
        if values is not None:
            axes.plot(curve.x, _positive(values, plot.log_y), style, color=colour, linewidth=1)


def _positive(values: np.ndarray, log: bool) -> np.ndarray:
    """Zeros have no place on a logarithmic axis: a gap."""
    return np.where(values > 0, values, np.nan) if log else values
