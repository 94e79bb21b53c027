"""He et al. 2023, Figure 1, drawn: correlations at chosen depths, and how far from collapse at all of them."""

import sys
from typing import TYPE_CHECKING

import numpy as np

from analysis.study import Found
from figures.frame import command
from figures.marks import bare
from kernelprop.plotting.style import COLOURS, PAGE, SEQUENTIAL, in_house_style, new_figure, whole_number_axis

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

NAME = "he2023_figure1"

# Point of the study: label, colour, line.
NETWORKS = {
    "vanilla": ("softmax attention,\nusual initialisation", COLOURS[1], "-"),
    "uspa": ("U-SPA", COLOURS[2], "-"),
    "espa": ("E-SPA", COLOURS[0], "--"),
}


@in_house_style
def draw(found: Found) -> "Figure":
    """A row of correlation matrices for each network, and below them the rank residual against depth."""
    shown, length = found.study.shown, found.study.length
    figure = new_figure(PAGE, 0.93 * PAGE)
    top, bottom = _halves(figure)
    top.suptitle(f"attention alone, causal, no skips, T = {length}, uncorrelated positions at the input", fontsize=8)
    grid = top.subplots(len(NETWORKS), len(shown), squeeze=False, gridspec_kw={"hspace": 0.02})
    for row, (name, (label, _, _)) in zip(grid, NETWORKS.items(), strict=True):
        for axes, depth, kernel in zip(row, shown, found.at(name)["kernels"], strict=True):
            axes.imshow(_correlations(kernel), vmin=0, vmax=1, cmap=SEQUENTIAL, interpolation="nearest")
            bare(axes)
            if name == next(iter(NETWORKS)):
                axes.set_title("input" if depth == 0 else f"layer {depth}")
        row[0].set_ylabel(label)
    grid[-1, 0].set_xlabel("position")
    top.colorbar(grid[0, 0].images[0], ax=grid, label="correlation of two positions", shrink=0.6)
    _residuals(bottom.subplots(), found)
    return figure


def _halves(figure: "Figure") -> "list[SubFigure]":
    return list(figure.subfigures(2, 1, height_ratios=(3, 1.35), squeeze=False).ravel())


def _correlations(kernel: np.ndarray) -> np.ndarray:
    scale = np.sqrt(np.diagonal(kernel))
    return kernel / (scale[:, None] * scale)


def _residuals(axes: "Axes", found: Found) -> None:
    for name, (label, colour, line) in NETWORKS.items():
        residual = found.at(name)["rank_residual"]
        told = np.flatnonzero(~found.at(name)["below_floor"])
        axes.semilogy(told, residual[told], line, color=colour, label=label.replace("\n", " "))
        if len(told) < len(residual):
            words = f"below what float64 tells from 0\nfrom layer {told[-1] + 1} on"
            place = (8, -2)
            axes.annotate(words, (told[-1], residual[told[-1]]), place, textcoords="offset points", color=colour)
    axes.set_ylim(1e-16, 3)
    whole_number_axis(axes, found.study.depth, "layer")
    axes.set_ylabel("rank residual\n(0: all positions agree)")
    axes.legend(loc="center right")


if __name__ == "__main__":
    sys.exit(command(NAME))
