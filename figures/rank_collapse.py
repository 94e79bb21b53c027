"""Rank collapse against depth, theory as lines and sampled networks as points."""

import sys
from typing import TYPE_CHECKING

import numpy as np

from analysis.study import Found
from figures.frame import command
from figures.marks import kinds, measured
from kernelprop.plotting.log_axis import finish_log_axis, log_line
from kernelprop.plotting.style import COLOURS, PAGE, in_house_style, new_figure, whole_number_axis

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAME = "rank_collapse"


@in_house_style
def draw(found: Found) -> "Figure":
    """Rank residual (left, logarithmic) and mean correlation (right)."""
    study = found.study
    labels = {
        "mean": "causal mean",
        "window": f"mean of the last {study.window}",
        "skip": rf"causal mean and skips, $\beta$ = {study.beta:g}",
        "scaled": r"causal mean and skips, $\beta = L^{-1/2}$",
        "espa": rf"E-SPA, $\gamma_L$ = {study.gamma:g}",
    }
    figure = new_figure(PAGE, 3.3)
    left, right = figure.subplots(1, 2)
    depth = np.arange(study.depth + 1)
    handles = []
    for (point, label), colour in zip(labels.items(), COLOURS, strict=False):
        of = found.at(point)
        log_line(left, depth, of["rank_residual"], hidden=of["below_floor"], color=colour, label=label)
        handles.append(left.lines[-1])
        left.lines[-1].set_marker("")
        visible = np.where(of["sampled_below_floor"], np.nan, of["sampled_rank_residual"])
        measured(left, depth, visible, of["sampled_rank_residual_stderr"], colour)
        right.plot(depth, of["mean_correlation"], color=colour)
        mean, error = of["sampled_mean_correlation"], of["sampled_mean_correlation_stderr"]
        measured(right, depth, mean, error, colour)
    finish_log_axis(left, [], top=1.0)
    left.set_ylabel(r"rank residual $\sqrt{\mathrm{tr}(C\Sigma C)/\mathrm{tr}\,\Sigma}$")
    left.set_title("0 when all positions agree", loc="left")
    right.set_ylabel("mean correlation")
    right.set_title("1 when all positions point one way", loc="left")
    right.set_ylim(-0.03, 1.03)
    for axes in (left, right):
        whole_number_axis(axes, study.depth, "depth (layers)")
    points = kinds(sampled=f"sampled, width {study.width}, ± 1 s.e.")
    figure.legend(handles=[*handles, *points], loc="outside lower center", ncols=3)
    return figure


if __name__ == "__main__":
    sys.exit(command(NAME))
