"""Depth × width phase map of collapse: what is left of the rank in sampled networks."""

import sys
from typing import TYPE_CHECKING

import numpy as np

from analysis.phase_map import KINDS
from analysis.study import Found
from figures.frame import command
from figures.marks import plain_ticks
from kernelprop.plotting.style import PAGE, SEQUENTIAL, in_house_style, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NAME = "phase_map"
LEVELS = (2.0, 4.0)


@in_house_style
def draw(found: Found) -> "Figure":
    """A map a network, the topmost row infinite width."""
    from matplotlib.colors import LogNorm

    study = found.study
    names = [*map(str, study.widths), "∞"]
    titles = {
        "collapsing": rf"causal mean, ReLU, skips, $\beta$ = {study.beta:g}",
        "preserving": rf"U-SPA, $\rho_L$ = {study.rho:g}, linear, no skips",
    }
    figure = new_figure(PAGE, 3.1)
    panels = figure.subplots(1, 2, sharey=True)
    norm = LogNorm(1, study.length)
    for axes, kind in zip(panels, KINDS, strict=True):
        rows = [found.at(f"{kind} {width}") for width in (*study.widths, "infinite")]
        _map(axes, np.stack([row["participation_ratio"] for row in rows]), norm)
        axes.set_title(titles[kind], loc="left")
        axes.set_xlabel("depth (layers)")
    panels[0].set_yticks(np.arange(len(names)), names)
    panels[0].set_ylabel("width d")
    bar = figure.colorbar(panels[0].images[0], ax=list(panels), label="participation ratio (1: collapsed)")
    plain_ticks(bar.ax.yaxis, [value for value in (1, 2, 4, 8, 16, 32, 64) if value <= study.length])
    return figure


def _map(axes: "Axes", ratio: np.ndarray, norm: object) -> None:
    rows, columns = ratio.shape
    axes.imshow(ratio, aspect="auto", origin="lower", cmap=SEQUENTIAL, norm=norm, interpolation="nearest")  # pyright: ignore
    # Infinite width is no point of the scale: the lines stay among the finite ones.
    finite = ratio[:-1]
    if min(finite.shape) > 1:
        lines = axes.contour(
            np.arange(columns),
            np.arange(rows - 1),
            finite,
            LEVELS,
            colors="white",
            linewidths=1.1,
            linestyles=["-", "--"],
        )
        axes.clabel(lines, fontsize=7, fmt="%g")
    axes.axhline(rows - 1.5, color="white", linewidth=1.5)
    axes.spines[:].set_visible(False)


if __name__ == "__main__":
    sys.exit(command(NAME))
