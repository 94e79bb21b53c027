"""Rank collapse against depth: the rank residual and the mean correlation of one or several networks."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from kernelprop.plotting.log_axis import finish_log_axis, floor_handle, log_line
from kernelprop.plotting.style import MANY, PAGE, in_house_style, line_colours, new_figure, whole_number_axis
from kernelprop.results import Evolution

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FLOOR_LABEL = "0, or below rounding"
LETTERS = 100  # that fit in one line of the legend


@in_house_style
def rank_collapse(evolutions: Mapping[str, Evolution] | Evolution) -> "Figure":
    """Draw how the positions come to agree: rank residual (left, logarithmic) and mean correlation (right).

    Args:
        evolutions: networks by label, or one network. Of a batch every kernel is a line of one colour.

    Returns:
        A figure of page width. Zeros and values below what rounding can tell are hollow triangles at the foot
        of the left axis; undefined values are gaps; bands are one standard error, where there is one.
    """
    labelled = {"": evolutions} if isinstance(evolutions, Evolution) else dict(evolutions)
    if not labelled:
        raise ValueError("rank_collapse: no evolutions to draw")
    figure = new_figure(PAGE, 2.6 + 0.2 * int(np.ceil(len(labelled) / 4)) * (len(labelled) > 1))
    left, right = figure.subplots(1, 2)
    rows = []
    for (label, evolution), colour in zip(labelled.items(), line_colours(len(labelled)), strict=True):
        floored = _residuals(left, evolution, colour, label)
        rows += [(floored, colour)] if len(floored) else []
        _correlations(right, evolution, colour)
    handles = [line for line in left.lines if not str(line.get_label()).startswith("_")]
    _axes(left, right, rows, max(evolution.layers for evolution in labelled.values()))
    _legend(figure, handles + ([floor_handle(FLOOR_LABEL)] if rows else []))
    return figure


def _residuals(axes: "Axes", evolution: Evolution, colour: str, label: str) -> np.ndarray:
    """Draw every kernel of the batch; return the depths at which one of them has no place on the axis."""
    depth = np.arange(evolution.layers + 1)
    floored = [np.array([], int)]
    for number, batch in enumerate(np.ndindex(*evolution.rank_residual.shape[:-1])):
        error = evolution.rank_residual_stderr
        kept_label = label if number == 0 and label else "_"
        floored.append(
            log_line(
                axes,
                depth,
                evolution.rank_residual[batch],
                hidden=evolution.below_floor[batch],
                stderr=None if error is None else error[batch],
                color=colour,
                label=kept_label,
            )
        )
    return np.unique(np.concatenate(floored))


def _correlations(axes: "Axes", evolution: Evolution, colour: str) -> None:
    depth = np.arange(evolution.layers + 1)
    marker = "o" if len(depth) <= MANY else None
    for batch in np.ndindex(*evolution.mean_correlation.shape[:-1]):
        mean = evolution.mean_correlation[batch]
        axes.plot(depth, mean, color=colour, marker=marker)
        if evolution.mean_correlation_stderr is not None:
            error = evolution.mean_correlation_stderr[batch]
            axes.fill_between(depth, mean - error, mean + error, color=colour, alpha=0.2, linewidth=0)


def _axes(left: "Axes", right: "Axes", rows: list[tuple[np.ndarray, str]], layers: int) -> None:
    finish_log_axis(left, rows, top=1.0)
    left.set_ylabel("rank residual")
    left.set_title(r"$\sqrt{\mathrm{tr}(C\Sigma C)\,/\,\mathrm{tr}\,\Sigma}$: 0 when all positions agree", loc="left")
    drawn = np.concatenate([np.asarray(line.get_ydata(), float) for line in right.lines])
    lowest = np.nanmin(drawn) if np.isfinite(drawn).any() else 0.0
    right.set_ylim(min(-0.03, lowest - 0.05), 1.03)
    right.set_ylabel("mean correlation")
    right.set_title("1 when all positions point one way", loc="left")
    for axes in (left, right):
        whole_number_axis(axes, layers, "depth (layers)")


def _legend(figure: "Figure", handles: list) -> None:
    if handles:
        letters = sum(len(str(handle.get_label())) + 8 for handle in handles)
        columns = len(handles) if letters <= LETTERS else min(len(handles), 4)
        figure.legend(handles=handles, loc="outside lower center", ncols=columns)
