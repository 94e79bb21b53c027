"""Gradient profile of all six weights by depth, theory as lines and sampled networks as points."""

import sys
from typing import TYPE_CHECKING

import numpy as np

from analysis.gradient_profile import WEIGHTS
from analysis.study import Found
from figures.frame import command
from figures.marks import kinds, measured
from kernelprop.plotting.style import COLOURS, GREY, PAGE, in_house_style, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NAME = "gradient_profile"
LABELS = dict(zip(WEIGHTS, ("$W_Q$", "$W_K$", "$W_V$", "$W_O$", "$W_1$", "$W_2$"), strict=True))
# Pairs whose lines lie close together.
LINES = {"key": (0, (2, 2)), "output": (0, (2, 2)), "mlp_out": (0, (2, 2))}
TITLES = {"none": "no skips, no norm", "normalised": r"skips, $\alpha^2 + \beta^2 = 1$", "pre": "skips, Pre-RMSNorm"}


@in_house_style
def draw(found: Found) -> "Figure":
    """Above the norms, below measured over predicted."""
    study = found.study
    figure = new_figure(PAGE, 4.6)
    grid = figure.subplots(2, len(TITLES), sharex=True, gridspec_kw={"height_ratios": (1.6, 1)})
    layers = np.arange(1, study.depth + 1)
    for (above, below), (point, title) in zip(grid.T, TITLES.items(), strict=True):
        of = found.at(point)
        for weight, colour in zip(WEIGHTS, COLOURS, strict=False):
            mean, error = of[f"sampled_{weight}"], of[f"sampled_{weight}_stderr"]
            line = LINES.get(weight, "-")
            above.plot(layers, of[weight], color=colour, linestyle=line, label=LABELS[weight])
            measured(above, layers, mean, error, colour)
            below.errorbar(layers, mean / of[weight], error / of[weight], color=colour, linewidth=0.9, elinewidth=0.7)
        above.set_yscale("log")
        above.set_title(title, loc="left")
        below.axhline(1, color=GREY, linewidth=0.6, zorder=0)
        _layer_axis(below, study.depth)
    grid[0, 0].set_ylabel(r"$E\,\|\partial\,\mathrm{loss}/\partial W\|_F^2\,/\,d^2$")
    grid[1, 0].set_ylabel("measured / theory")
    sampled = f"sampled: width {study.width}, {study.heads} heads, {study.draws} draws, ± 1 s.e."
    handles = [line for line in grid[0, 0].lines if not str(line.get_label()).startswith("_")]
    figure.legend(handles=[*handles, *kinds(sampled=sampled)], loc="outside lower center", ncols=4)
    return figure


def _layer_axis(axes: "Axes", layers: int) -> None:
    from matplotlib.ticker import MaxNLocator

    axes.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True, min_n_ticks=1))
    axes.set_xlim(0.5, layers + 0.5)
    axes.set_xlabel("layer")


if __name__ == "__main__":
    sys.exit(command(NAME))
