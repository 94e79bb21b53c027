"""Temperature sweep: queries against values, and the rank under random logits."""

import sys
from typing import TYPE_CHECKING

import numpy as np

from analysis.study import Found
from analysis.temperature import NETWORKS
from figures.frame import command
from figures.marks import few_ticks, kinds, measured, plain_ticks
from kernelprop.plotting.style import COLOURS, GREY, PAGE, in_house_style, new_figure, shades, whole_number_axis

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NAME = "temperature"
LABELS = {"uniform": "causal mean", "espa": "E-SPA", "window": "window of 4"}


@in_house_style
def draw(found: Found) -> "Figure":
    """Left: query over value gradient; right: rank residual of random softmax attention."""
    figure = new_figure(PAGE, 3.2)
    left, right = figure.subplots(1, 2)
    handles = _balance(left, found)
    _rank(right, found)
    figure.legend(handles=handles, loc="outside lower center", ncols=3)
    return figure


def _balance(axes: "Axes", found: Found) -> list:
    taus = np.array(found.study.taus)
    for point, colour in zip(NETWORKS, COLOURS, strict=False):
        of = found.at(point)
        balance = float(of["balance"])
        axes.plot(taus, of["theory"], color=colour, label=rf"{LABELS[point]}: equal at $\tau$ = {balance:.2g}")
        measured(axes, taus, of["sampled"], of["sampled_stderr"], colour)
        axes.plot([balance], [1], marker="|", markersize=9, color=colour)
    axes.axhline(1, color=GREY, linewidth=0.6, zorder=0)
    axes.set_xscale("log")
    axes.set_yscale("log")
    few_ticks(axes.yaxis)
    plain_ticks(axes.xaxis, taus)
    axes.set_xlabel(r"temperature factor $\tau$")
    axes.set_ylabel("gradient norm, queries over values")
    axes.set_title("queries start at zero", loc="left")
    study = found.study
    points = kinds(sampled=f"sampled, width {study.width}, ± 1 s.e.")
    handles = [line for line in axes.lines if not str(line.get_label()).startswith("_")]
    return [*handles, *points]


def _rank(axes: "Axes", found: Found) -> None:
    study = found.study
    depth = np.arange(study.depth + 1)
    for tau, colour in zip(study.taus, shades(len(study.taus)), strict=True):
        of = found.at(f"random {tau:g}")
        axes.plot(depth, of["rank_residual"], color=colour, label=f"{tau:g}")
        low = of["rank_residual"] - of["rank_residual_stderr"]
        axes.fill_between(depth, low, low + 2 * of["rank_residual_stderr"], color=colour, alpha=0.2, linewidth=0)
    axes.set_yscale("log")
    few_ticks(axes.yaxis)
    whole_number_axis(axes, study.depth, "depth (layers)")
    axes.set_ylabel("rank residual")
    axes.set_title("random queries and keys, no skips", loc="left")
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), title=r"$\tau$", handlelength=1.2)


if __name__ == "__main__":
    sys.exit(command(NAME))
