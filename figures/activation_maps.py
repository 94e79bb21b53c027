"""Activation C maps, plain and shaped, once and through the whole depth."""

import sys
from typing import TYPE_CHECKING

from analysis.study import Found
from figures.frame import command
from kernelprop.plotting.style import COLOURS, GREY, PAGE, in_house_style, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAME = "activation_maps"
# Some maps agree, so that one line would hide the other.
LINES = ("-", (0, (4, 2)), "-", (0, (2, 1.5)))
NAMES = {"relu": "ReLU", "gelu": "GELU", "tanh": "tanh", "erf": "erf", "leaky_relu": "leaky ReLU"}


@in_house_style
def draw(found: Found) -> "Figure":
    """Rows: plain and shaped activations; columns: one nonlinear layer, and all."""
    study = found.study
    figure = new_figure(PAGE, 0.78 * PAGE)
    grid = figure.subplots(2, 2, sharex=True, sharey=True)
    rows = {"plain": study.plain, "shaped": study.shaped}
    for row, (kind, points) in zip(grid, rows.items(), strict=True):
        for point, colour, line in zip(points, COLOURS, LINES, strict=False):
            of = found.at(point)
            for axes, name in zip(row, ("once", "through"), strict=True):
                axes.plot(of["correlations"], of[name], color=colour, linestyle=line, label=label(point))
        row[0].set_ylabel(f"{kind}: correlation behind")
        row[1].legend(loc="center left", bbox_to_anchor=(1.02, 0.5), title=kind)
    grid[0, 0].set_title("one layer", loc="left")
    grid[0, 1].set_title(f"{study.depth} layers in sequence", loc="left")
    for axes in grid.ravel():
        axes.plot([-1, 1], [-1, 1], color=GREY, linewidth=0.6, zorder=0)
    for axes in grid[1]:
        axes.set_xlabel("correlation in front")
    return figure


def label(point: str) -> str:
    """``dks(gelu)`` as readers know it."""
    method, bracket, inner = point.rstrip(")").partition("(")
    if not bracket:
        return NAMES.get(point, point)
    return f"{method.upper()}, {NAMES.get(inner, inner)}"


if __name__ == "__main__":
    sys.exit(command(NAME))
