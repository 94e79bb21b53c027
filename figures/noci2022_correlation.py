"""Noci et al. 2022: correlation against depth, with and without depth scaling, without norm, Pre-LN, Post-LN."""

import sys
from typing import TYPE_CHECKING

import numpy as np

from analysis.study import Found
from figures.frame import command
from figures.marks import kinds, measured
from kernelprop.plotting.style import COLOURS, GREY, PAGE, in_house_style, new_figure, whole_number_axis

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAME = "noci2022_correlation"
PLACES = {"none": ("no norm", "-"), "pre": ("Pre-LN", "-"), "post": ("Post-LN", (0, (4, 2)))}
TITLES = {"plain": "branches of weight 1", "scaled": r"branches of weight $L^{-1/2}$: another scale"}


@in_house_style
def draw(found: Found) -> "Figure":
    """Left without, right with depth scaling."""
    study = found.study
    figure = new_figure(PAGE, 3.0)
    panels = figure.subplots(1, 2)
    depth = np.arange(study.depth + 1)
    for axes, (scaling, title) in zip(panels, TITLES.items(), strict=True):
        for (place, (label, line)), colour in zip(PLACES.items(), COLOURS, strict=False):
            of = found.at(f"{place} {scaling}")
            axes.plot(depth, of["mean_correlation"], color=colour, linestyle=line, label=label)
            measured(axes, depth, of["sampled"], of["sampled_stderr"], colour)
        axes.set_title(title, loc="left")
        whole_number_axis(axes, study.depth, "depth (layers)")
    limit = float(found.at("none scaled")["limit"])
    panels[1].axhline(limit, color=GREY, linestyle=":", linewidth=1)
    words = f"limit at infinite depth, no norm: {limit:.3f}"
    panels[1].annotate(words, (0, limit), (0, 4), textcoords="offset points", color=GREY)
    panels[0].set_ylim(-0.03, 1.03)
    panels[1].set_ylim(-0.03 * 1.5 * limit, 1.5 * limit)
    panels[0].set_ylabel("mean correlation")
    points = kinds(sampled=f"sampled, width {study.width}, ± 1 s.e.")
    handles = [line for line in panels[0].lines if not str(line.get_label()).startswith("_")]
    figure.legend(handles=[*handles, *points], loc="outside lower center", ncols=5)
    return figure


if __name__ == "__main__":
    sys.exit(command(NAME))
