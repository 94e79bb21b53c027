"""Mismatch for real token statistics: where words repeat, and what that does to the diagonal."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from analysis.study import Found
from figures.frame import command
from kernelprop.plotting.style import COLOURS, GREY, PAGE, SEQUENTIAL, in_house_style, new_figure, whole_number_axis

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAME = "token_mismatch"
KINDS = {"espa": ("E-SPA", COLOURS[0], r"\gamma_0"), "uspa": ("U-SPA", COLOURS[2], r"\rho_0")}


@in_house_style
def draw(found: Found) -> "Figure":
    """The input kernel, and the last diagonal by position before and after the fit."""
    study = found.study
    length = len(study.tokens)
    figure = new_figure(PAGE, 2.7)
    image, *panels = figure.subplots(1, 3, gridspec_kw={"width_ratios": (1, 1.15, 1.15)})
    panels[1].sharey(panels[0])
    figure.suptitle(f"{Path(study.source).name}, {length} words, random embeddings", fontsize=8)
    image.imshow(found.at("espa")["kernel"], cmap=SEQUENTIAL, vmin=0, vmax=1, interpolation="nearest")
    image.set_title("yellow: the same word", loc="left")
    image.set_xlabel("position")
    image.set_ylabel("position")
    image.spines[:].set_visible(False)
    position = np.arange(length)
    for axes, (point, (name, colour, parameter)) in zip(panels, KINDS.items(), strict=True):
        of = found.at(point)
        axes.axhline(1, color=GREY, linewidth=0.6, zorder=0)
        axes.plot(position, of["diagonal"], color=colour, label="made for different words")
        value = float(of["fitted"])
        fitted = rf"fitted, ${parameter}$ = {'∞' if np.isinf(value) else format(value, '.2g')}"
        axes.plot(position, of["fitted_diagonal"], color="black", linestyle=(0, (3, 2)), linewidth=1, label=fitted)
        axes.set_title(f"{name} after {study.depth} layers", loc="left")
        axes.legend(loc="upper left")
        whole_number_axis(axes, length - 1, "position")
    drawn = [found.at(kind)[name] for kind in KINDS for name in ("diagonal", "fitted_diagonal")]
    low, high = np.min(drawn), np.max(drawn)
    # Room for the legends above the lines.
    panels[0].set_ylim(low - 0.05 * (high - low), high + 0.4 * (high - low))
    panels[0].set_ylabel(r"diagonal of $\Sigma_L$ (wanted: 1)")
    return figure


if __name__ == "__main__":
    sys.exit(command(NAME))
