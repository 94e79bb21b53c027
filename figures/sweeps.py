"""One number moved at a time: what is left of the signal behind the last layer."""

import sys
from typing import TYPE_CHECKING

import numpy as np

from analysis.study import Found
from figures.activation_maps import label as activation_label
from figures.frame import command
from figures.marks import plain_ticks
from kernelprop.plotting.style import COLOURS, PAGE, in_house_style, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from analysis.sweeps import Spec

NAME = "sweeps"
PANELS = {
    "depth": "depth L",
    "width": "width d (sampled)",
    "length": "positions T",
    "beta": r"branch weight $\beta$",
    "gamma": r"E-SPA: $\gamma_L$",
    "rho": r"U-SPA: $\rho_L$",
    "tau": r"random logits: $\tau$",
    "activation": "activation",
}
LINEAR = ("rho", "beta")
NUMBERS = {"mean_correlation": ("mean correlation", "o-"), "rank_residual": ("rank residual", "s--")}


@in_house_style
def draw(found: Found) -> "Figure":
    """A panel a number; bars are one standard error where there is one."""
    study = found.study
    figure = new_figure(PAGE, 4.3)
    grid = figure.subplots(2, 4, sharey=True).ravel()
    for axes, (point, label) in zip(grid, PANELS.items(), strict=True):
        of, values = found.at(point), study.values(point)
        x = np.arange(len(values)) if point == "activation" else np.array(values)
        for (name, (words, style)), colour in zip(NUMBERS.items(), COLOURS, strict=False):
            axes.errorbar(x, of[name], of[f"{name}_stderr"], fmt=style, color=colour, label=words, elinewidth=0.9)
        axes.set_xlabel(label)
        if point == "activation":
            axes.set_xticks(x, [activation_label(str(value)) for value in values], rotation=60, ha="right")
            axes.set_xlabel("")
        elif point not in LINEAR:
            axes.set_xscale("log")
            plain_ticks(axes.xaxis, values if len(values) < 5 else values[::2])
    for axes in grid[::4]:
        axes.set_ylabel("behind the last layer")
        axes.set_ylim(-0.03, 1.05)
    handles, labels = grid[0].get_legend_handles_labels()
    figure.suptitle(title(study), fontsize=8)
    figure.legend(handles, labels, loc="outside lower center", ncols=2)
    return figure


def title(study: "Spec") -> str:
    """What every panel is drawn of, but for the number that it moves; three panels have another attention too."""
    return (
        "attention and MLP with normalised skips, no norm; where a panel does not move it, "
        rf"T = {study.length}, L = {study.depth}, $\beta$ = {study.beta:g}, {activation_label(study.activation)};"
        "\nattention: causal E-SPA, U-SPA and softmax of random logits in the panels that name them, "
        "causal mean in all others"
    )


if __name__ == "__main__":
    sys.exit(command(NAME))
