"""A real encoder: its attention, what theory says of that alone, and what the network does to a sentence."""

import sys
from typing import TYPE_CHECKING

import numpy as np

from analysis.study import Found
from figures.frame import command
from figures.marks import bare
from kernelprop.plotting.style import COLOURS, PAGE, SEQUENTIAL, in_house_style, new_figure, whole_number_axis

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NAME = "real_encoder"
LEAST = 1e-3


@in_house_style
def draw(found: Found) -> "Figure":
    """Attention, theory's and measured correlations at chosen depths, and both against depth."""
    from matplotlib.colors import LogNorm

    of = found.at("minilm")
    layers = found.study.layers
    figure = new_figure(PAGE, 1.02 * PAGE)
    top, bottom = list(figure.subfigures(2, 1, height_ratios=(3, 1.1), squeeze=False).ravel())
    grid = top.subplots(3, len(layers), squeeze=False)
    correlations = {"cmap": SEQUENTIAL, "vmin": 0, "vmax": 1, "interpolation": "nearest"}
    for column, layer in enumerate(layers):
        attention = np.maximum(of["attention"][column].astype(float), LEAST)
        grid[0, column].imshow(attention, norm=LogNorm(LEAST, 1), cmap=SEQUENTIAL, interpolation="nearest")
        grid[1, column].imshow(of["theory"][column].astype(float), **correlations)
        grid[2, column].imshow(of["measured"][column].astype(float), **correlations)
        grid[0, column].set_title(f"layer {layer}")
        for axes in grid[:, column]:
            bare(axes)
    words = ("attention,\nmean of heads", "correlation,\nattention alone\n(theory)", "correlation,\nreal network")
    for axes, label in zip(grid[:, 0], words, strict=True):
        axes.set_ylabel(label)
    top.colorbar(grid[0, 0].images[0], ax=list(grid[0]), label=f"entry (≤ {LEAST:g} alike)", aspect=12)
    top.colorbar(grid[1, 0].images[0], ax=list(grid[1:].ravel()), label="correlation of two positions", shrink=0.6)
    left, right = bottom.subplots(1, 2)
    _lines(left, of, "correlation", "mean correlation")
    _lines(right, of, "rank_residual", "rank residual")
    left.set_ylim(-0.03, 1.03)
    right.set_yscale("log")
    bottom.legend(handles=list(left.lines), loc="outside lower center", ncols=2)
    return figure


def _lines(axes: "Axes", of: dict[str, np.ndarray], name: str, label: str) -> None:
    depth = np.arange(len(of[f"theory_{name}"]))
    axes.plot(depth, of[f"theory_{name}"], "s-", color=COLOURS[1], label="attention alone (theory)")
    axes.plot(depth, of[f"measured_{name}"], "o-", color=COLOURS[0], label="the real network (measured)")
    axes.set_ylabel(label)
    whole_number_axis(axes, int(depth[-1]), "depth (layers)")


if __name__ == "__main__":
    sys.exit(command(NAME))
