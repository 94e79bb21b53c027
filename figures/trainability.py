"""Trainability map: where residual scale and temperature keep both kernel and gradients healthy."""

import sys
from typing import TYPE_CHECKING

import numpy as np

from analysis.study import Found
from analysis.trainability import COLLAPSED, GROWN, HEALTHY, QUERIES_HIGH, QUERIES_LOW, UNEVEN, Setting, Spec
from figures.activation_maps import label as activation_label
from figures.frame import command
from figures.marks import plain_ticks
from kernelprop.plotting.style import COLOURS, COLUMN, PAGE, in_house_style, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NAME = "trainability"
NORMS = {"none": "no norm", "pre": "Pre-LN", "post": "Post-LN"}
# From the worst: of several ills a point shows the first.
ILLS = {
    COLLAPSED: ("positions agree", "#444444"),
    GROWN: ("diagonal out of bounds", COLOURS[3]),
    UNEVEN: ("layers learn at different paces", COLOURS[4]),
    QUERIES_LOW: ("queries learn slower than values", COLOURS[5]),
    QUERIES_HIGH: ("queries learn faster than values", COLOURS[1]),
    HEALTHY: ("healthy", COLOURS[2]),
}


@in_house_style
def draw(found: Found) -> "Figure":
    """A panel a network."""
    from matplotlib.colors import ListedColormap
    from matplotlib.patches import Patch

    study = found.study
    points = study.points()
    columns = min(len(points), 3)
    rows = -(-len(points) // columns)
    figure = new_figure(PAGE if columns > 1 else COLUMN + 1, 2.1 * rows + 1.0)
    panels = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).ravel()
    colours = ListedColormap([colour for _, colour in ILLS.values()])
    shown: set[int] = set()
    for axes, point in zip(panels, points, strict=False):
        worst = _worst(study.verdict(found.at(point)))
        shown |= set(np.unique(worst).tolist())
        limits = {"vmin": -0.5, "vmax": len(ILLS) - 0.5}
        axes.pcolormesh(study.beta_values(), study.tau_values(), worst.T, cmap=colours, rasterized=True, **limits)
        _axes(axes, study, point)
    for axes in panels[len(points) :]:
        axes.set_axis_off()
    kinds = list(ILLS.values())
    patches = [Patch(color=kinds[index][1], label=kinds[index][0]) for index in sorted(shown)]
    figure.legend(handles=patches, loc="outside lower center", ncols=2 if columns == 1 else 3)
    placed = panels.reshape(rows, columns)
    for axes in placed[-1]:
        axes.set_xlabel(r"weight $\beta$ of the branches")
    for axes in placed[:, 0]:
        axes.set_ylabel(r"temperature factor $\tau$")
    return figure


def _worst(codes: np.ndarray) -> np.ndarray:
    """The place in ``ILLS`` of the worst ill at each point."""
    found = np.full(codes.shape, len(ILLS) - 1)
    for place, code in reversed(list(enumerate(ILLS))):
        if code != HEALTHY:
            found[(codes & code) > 0] = place
    return found


def _axes(axes: "Axes", study: Spec, point: str) -> None:
    if study.description:
        axes.set_title(point, loc="left")
    else:
        setting = Setting.of(point)
        words = f"T = {setting.length}, L = {setting.depth}, {NORMS[setting.norm]}"
        axes.set_title(f"{words}\n{activation_label(setting.activation)}", loc="left")
    axes.set_xscale("log")
    axes.set_yscale("log")
    plain_ticks(axes.xaxis, (0.02, 0.1, 0.5))
    plain_ticks(axes.yaxis, (0.25, 1, 4, 16, 64, 256))


if __name__ == "__main__":
    sys.exit(command(NAME))
