"""Noci et al. 2022: gradient norms of queries and values against input scale, T, d and ρ."""

import sys
from typing import TYPE_CHECKING

import numpy as np

from analysis.study import Found
from figures.frame import command
from figures.marks import few_ticks, kinds, measured, plain_ticks
from kernelprop.plotting.style import COLOURS, PAGE, in_house_style, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NAME = "noci2022_gradients"
PANELS = {
    "scale": r"input scale $\sigma_x$",
    "length": "positions T",
    "width": "width d",
    "correlation": r"input correlation $\rho$",
}
WEIGHTS = {"query": ("queries $W_Q$", COLOURS[0]), "value": ("values $W_V$", COLOURS[1])}


@in_house_style
def draw(found: Found) -> "Figure":
    """Four panels, closed forms as lines, automatic differentiation of sampled layers as points."""
    study = found.study
    figure = new_figure(PAGE, 4.4)
    grid = figure.subplots(2, 2).ravel()
    for axes, (point, label) in zip(grid, PANELS.items(), strict=True):
        of = found.at(point)
        for weight, (name, colour) in WEIGHTS.items():
            axes.plot(of["values"], of[weight], color=colour, label=name)
            measured(axes, of["values"], of[f"sampled_{weight}"], of[f"sampled_{weight}_stderr"], colour)
        axes.set_yscale("log")
        if point != "scale":
            few_ticks(axes.yaxis)
        axes.set_xlabel(label)
        if point != "correlation":
            axes.set_xscale("log")
            plain_ticks(axes.xaxis, of["values"])
        _fixed(axes, point, study)
    for axes in grid[::2]:
        axes.set_ylabel(r"$(E\,\|\partial S/\partial W\|_F^2)^{1/2}$")
    _slopes(grid[0], found.at("scale"))
    points = kinds("closed form", f"{study.draws} sampled layers, ± 1 s.e.")
    handles = [line for line in grid[0].lines if not str(line.get_label()).startswith("_")]
    figure.legend(handles=[*handles, *points], loc="outside lower center", ncols=4)
    return figure


def _fixed(axes: "Axes", point: str, study: object) -> None:
    words = {"scale": "\\sigma_x = 1", "length": "T", "width": "d", "correlation": "\\rho"}
    held = [
        f"${words[name]}$" if name == "scale" else f"${words[name]}$ = {getattr(study, name):g}"
        for name in PANELS
        if name != point
    ]
    axes.set_title(", ".join(held), loc="left")


def _slopes(axes: "Axes", of: dict[str, np.ndarray]) -> None:
    for weight, (_, colour) in WEIGHTS.items():
        steps = np.diff(np.log(of[weight])) / np.diff(np.log(of["values"]))
        place = (float(of["values"][-1]), float(of[weight][-1]))
        axes.annotate(f"slope {steps.mean():.3g}", place, (-8, 0), textcoords="offset points", ha="right", color=colour)


if __name__ == "__main__":
    sys.exit(command(NAME))
