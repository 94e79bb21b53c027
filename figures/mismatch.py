"""Diagonal blow-up under mismatch: the diagonal against depth for inputs that the attention was not made for."""

import sys
from typing import TYPE_CHECKING

import numpy as np

from analysis.study import Found
from figures.frame import command
from figures.marks import plain_ticks
from kernelprop.plotting.style import GREY, PAGE, in_house_style, new_figure, shades, whole_number_axis

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAME = "mismatch"
TICKS = (0.5, 0.7, 1, 2, 3, 5, 10, 20, 50)
TITLES = {"espa": r"E-SPA, expects $\rho_0 = 0$", "uspa": r"U-SPA, expects $\rho_0 = 0$"}


@in_house_style
def draw(found: Found) -> "Figure":
    """The mean of the diagonal as it is (lines), and with the schedule fitted to the input (dashes)."""
    from matplotlib.lines import Line2D

    study = found.study
    figure = new_figure(PAGE, 3.0)
    panels = figure.subplots(1, 2, sharey=True)
    depth = np.arange(study.depth + 1)
    handles = []
    for axes, (kind, title) in zip(panels, TITLES.items(), strict=True):
        for correlation, colour in zip(study.correlations, shades(len(study.correlations)), strict=True):
            of = found.at(f"{kind} {correlation:g}")
            axes.plot(depth, of["diagonal"].mean(-1), color=colour)
            axes.plot(depth, of["fitted_diagonal"].mean(-1), color=colour, linestyle=(0, (3, 2)), linewidth=1)
            if axes is panels[0]:
                handles.append(Line2D([], [], color=colour, label=f"{correlation:g}"))
        axes.axhline(1, color=GREY, linewidth=0.6, zorder=0)
        axes.set_title(title, loc="left")
        axes.set_yscale("log")
        whole_number_axis(axes, study.depth, "depth (layers)")
    plain_ticks(panels[0].yaxis, TICKS)
    panels[0].set_ylabel(r"mean diagonal of $\Sigma_l$, 1 at the input")
    handles += [
        Line2D([], [], color=GREY, label="as it is"),
        Line2D([], [], color=GREY, linestyle=(0, (3, 2)), linewidth=1, label="schedule fitted to the input"),
    ]
    figure.legend(handles=handles, loc="outside right center", title=r"input correlation $\rho$")
    return figure


if __name__ == "__main__":
    sys.exit(command(NAME))
