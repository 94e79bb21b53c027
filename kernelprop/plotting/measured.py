"""What theory says of attention alone beside what a real network does."""

from typing import TYPE_CHECKING, Any

import numpy as np

from kernelprop import observables
from kernelprop.plotting.style import COLOURS, COLUMN, in_house_style, new_figure, whole_number_axis
from kernelprop.results import Evolution

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@in_house_style
def measured_against_theory(
    evolution: Evolution,
    measured: Any,
    *,
    theory_label: str = "attention alone (theory)",
    measured_label: str = "the real network (measured)",
    title: str | None = None,
) -> "Figure":
    """Draw the mean correlation of an evolution beside that of measured kernels, depth by depth.

    Args:
        evolution: what theory says, one kernel (no batch).
        measured: kernels of the real network, ``(L+1, T, T)``.
        theory_label: names the first line.
        measured_label: names the second.
        title: over the axes.

    Raises:
        ValueError: for measured kernels of another shape.
    """
    kernels = np.asarray(measured)
    wanted = (evolution.layers + 1, evolution.length, evolution.length)
    if evolution.mean_correlation.ndim != 1 or kernels.shape != wanted:
        raise ValueError(f"measured: shape {kernels.shape} is not (L+1, T, T) = {wanted}")
    figure = new_figure(COLUMN, 2.6)
    axes = figure.subplots()
    depth = np.arange(evolution.layers + 1)
    lines = (
        (evolution.mean_correlation, COLOURS[1], "s", theory_label),
        (observables.mean_cosine(kernels), COLOURS[0], "o", measured_label),
    )
    for values, colour, marker, label in lines:
        axes.plot(depth, values, color=colour, marker=marker, label=label, clip_on=False)
    axes.set_ylim(min(0.0, *(float(np.nanmin(values)) for values, *_ in lines)), 1.02)
    axes.set_ylabel("mean cosine between positions")
    whole_number_axis(axes, evolution.layers, "depth (layers)")
    axes.grid(axis="y", color="0.9", linewidth=0.6)
    axes.set_axisbelow(True)
    figure.legend(loc="outside upper left", ncols=1, handlelength=1.8)
    if title:
        axes.set_title(title, loc="left")
    return figure
