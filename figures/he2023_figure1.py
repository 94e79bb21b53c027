"""He et al. 2023, Figure 1, drawn: correlations at chosen depths, and how far from collapse at all of them.

``python -m figures.he2023_figure1`` reads the record that ``python -m analysis.he2023_figure1`` writes, and draws
``figures/he2023_figure1.png`` and ``.svg``.
"""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from analysis.he2023_figure1 import NAME
from analysis.records import FOLDER, Record, read_record
from kernelprop.plotting.saving import save_figure
from kernelprop.plotting.style import COLOURS, PAGE, SEQUENTIAL, in_house_style, new_figure, whole_number_axis

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

# Name in the record: label, colour, line.
NETWORKS = {
    "vanilla": ("softmax attention,\nusual initialisation", COLOURS[1], "-"),
    "uspa": ("U-SPA", COLOURS[2], "-"),
    "espa": ("E-SPA", COLOURS[0], "--"),
}


@in_house_style
def draw(record: Record) -> "Figure":
    """A row of correlation matrices for each network, and below them the rank residual against depth."""
    shown = record.arrays["shown"]
    length = record.words["spec"]["length"]
    figure = new_figure(PAGE, 0.93 * PAGE)
    top, bottom = _halves(figure)
    top.suptitle(f"attention alone, causal, no skips, T = {length}, uncorrelated positions at the input", fontsize=8)
    grid = top.subplots(len(NETWORKS), len(shown), squeeze=False, gridspec_kw={"hspace": 0.02})
    for row, (name, (label, _, _)) in zip(grid, NETWORKS.items(), strict=True):
        for axes, depth, kernel in zip(row, shown, record.arrays[f"{name}_kernels"], strict=True):
            axes.imshow(_correlations(kernel), vmin=0, vmax=1, cmap=SEQUENTIAL, interpolation="nearest")
            _bare(axes)
            if name == next(iter(NETWORKS)):
                axes.set_title("input" if depth == 0 else f"layer {depth}")
        row[0].set_ylabel(label)
    grid[-1, 0].set_xlabel("position")
    top.colorbar(grid[0, 0].images[0], ax=grid, label="correlation of two positions", shrink=0.6)
    _residuals(bottom.subplots(), record)
    return figure


def _halves(figure: "Figure") -> "list[SubFigure]":
    return list(figure.subfigures(2, 1, height_ratios=(3, 1.35), squeeze=False).ravel())


def _correlations(kernel: np.ndarray) -> np.ndarray:
    scale = np.sqrt(np.diagonal(kernel))
    return kernel / (scale[:, None] * scale)


def _bare(axes: "Axes") -> None:
    axes.set_xticks([])
    axes.set_yticks([])
    for side in axes.spines.values():
        side.set_visible(False)


def _residuals(axes: "Axes", record: Record) -> None:
    for name, (label, colour, line) in NETWORKS.items():
        residual = record.arrays[f"{name}_rank_residual"]
        told = np.flatnonzero(~record.arrays[f"{name}_below_floor"])
        axes.semilogy(told, residual[told], line, color=colour, label=label.replace("\n", " "))
        if len(told) < len(residual):
            words = f"below what float64 tells from 0\nfrom layer {told[-1] + 1} on"
            place = (8, -2)
            axes.annotate(words, (told[-1], residual[told[-1]]), place, textcoords="offset points", color=colour)
    axes.set_ylim(1e-16, 3)
    whole_number_axis(axes, record.words["spec"]["depth"], "layer")
    axes.set_ylabel("rank residual\n(0: all positions agree)")
    axes.legend(loc="center right")


def main(records: Path = FOLDER, folder: Path = Path(__file__).parent) -> list[Path]:
    """Draw the picture in both formats.

    Raises:
        ValueError: where the record is missing, with the command that makes it.
    """
    figure = draw(read_record(NAME, records))
    files = [folder / f"{NAME}.{ending}" for ending in ("png", "svg")]
    for file in files:
        save_figure(figure, file)
    return files


if __name__ == "__main__":
    try:
        print("\n".join(map(str, main())))
    except ValueError as error:
        sys.exit(f"error: {error}")
