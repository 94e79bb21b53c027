"""Measurements of sampled networks, alone and over the infinite-width prediction."""

from typing import TYPE_CHECKING

import numpy as np

from kernelprop.finite.comparison import Comparison
from kernelprop.finite.ensemble import Ensemble
from kernelprop.plotting.gradients import NAMES as WEIGHTS
from kernelprop.plotting.style import COLOURS, MANY, PAGE, in_house_style, new_figure, whole_number_axis

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

OBSERVABLES = {
    "mean_correlation": "mean correlation",
    "rank_residual": "rank residual",
    "participation_ratio": "participation ratio",
}
DECADE = 10
# Markers of several widths stand side by side, this share of a layer apart.
APART = 0.12
BARS = "$\\pm$ 1 s.e."


@in_house_style
def prediction_and_measurement(comparison: Comparison) -> "Figure":
    """Draw predictions as lines and, over them, measurements of every width with error bars of one standard error.

    Returns:
        A figure of page width: the three observables against depth, and below them, where gradients were compared,
        the gradient norm of every weight against the layer, divided by ``d²``, on a logarithmic axis where it spans a
        decade.
    """
    weights = [name for name in WEIGHTS if name in comparison.predicted and comparison.predicted[name].any()]
    figure, by_name = _panels([*OBSERVABLES, *weights])
    for name, axes in by_name.items():
        predicted = comparison.predicted[name]
        axes.set_ylabel(_quantity(name, "$/d^2$"))
        places = _places(name, len(predicted))
        axes.plot(places, _shown(axes, name, predicted), color="black", label="prediction", zorder=1)
        count = len(comparison.widths)
        for index, width in enumerate(comparison.widths.tolist()):
            shift = APART * (index - (count - 1) / 2)
            values = _shown(axes, name, comparison.measured[name][index])
            error = comparison.measured_stderr[name][index]
            _points(axes, places + shift, values, error, COLOURS[index % len(COLOURS)], f"width {width}, {BARS}")
    figure.legend(*by_name["mean_correlation"].get_legend_handles_labels(), loc="outside upper center", ncols=6)
    return figure


@in_house_style
def measured_profile(ensemble: Ensemble) -> "Figure":
    """Draw means with error bars of one standard error, and the spread of single networks as a band.

    Returns:
        A figure of page width: the three observables against depth, and below them the gradient norms that were
        measured, raw at the ensemble's width.
    """
    weights = [name for name, norm in ensemble.gradients.items() if norm.mean.any()]
    figure, by_name = _panels([*OBSERVABLES, *weights])
    for name, axes in by_name.items():
        estimate = getattr(ensemble, name)
        axes.set_ylabel(_quantity(name, f", $d = {ensemble.width}$"))
        places = _places(name, len(estimate.mean))
        values = _shown(axes, name, estimate.mean)
        spread = ensemble.spread(name)
        # A band that reaches zero has no lower edge on a logarithmic axis: it ends where the points do.
        low = np.where(values > spread, values - spread, values) if axes.get_yscale() == "log" else values - spread
        label = f"single networks of width {ensemble.width}, $\\pm$ 1 s.d."
        axes.fill_between(places, low, values + spread, color=COLOURS[0], alpha=0.2, linewidth=0, label=label)
        _points(axes, places, values, estimate.stderr, COLOURS[0], f"mean of {ensemble.draws}, {BARS}")
    figure.legend(*by_name["mean_correlation"].get_legend_handles_labels(), loc="outside upper center", ncols=2)
    return figure


def _panels(names: list[str]) -> "tuple[Figure, dict[str, Axes]]":
    columns = 3 if len(names) <= 6 else 4
    rows = -(-len(names) // columns)
    figure = new_figure(PAGE, 0.4 + 1.9 * rows)
    grid = figure.subplots(rows, columns, squeeze=False).ravel()
    for axes in grid[len(names) :]:
        axes.remove()
    return figure, dict(zip(names, grid, strict=False))


def _places(name: str, count: int) -> np.ndarray:
    return np.arange(count) + (name in WEIGHTS)


def _quantity(name: str, normalisation: str) -> str:
    """What stands on the vertical axis; of gradient norms with their normalisation."""
    if name not in WEIGHTS:
        return OBSERVABLES[name]
    weight = WEIGHTS[name].strip("$")
    return f"$\\|\\partial\\,\\mathrm{{loss}}/\\partial {weight}\\|_F^2$" + normalisation


def _shown(axes: "Axes", name: str, values: np.ndarray) -> np.ndarray:
    """Set the panel up, and return the values with gaps where a logarithm has none."""
    if name not in WEIGHTS:
        whole_number_axis(axes, len(values) - 1, "depth")
        return np.asarray(values, float)
    whole_number_axis(axes, len(values), "layer")
    axes.set_xlim(left=1 - max(0.04 * len(values), 0.3))
    positive = values[values > 0]
    if len(positive) and positive.max() < DECADE * positive.min():  # a logarithmic axis would have no round ticks
        return np.asarray(values, float)
    axes.set_yscale("log", nonpositive="mask")
    return np.where(values > 0, values, np.nan)


def _points(axes: "Axes", places: np.ndarray, values: np.ndarray, errors: np.ndarray, colour: str, label: str) -> None:
    size = 3.0 if len(places) <= MANY else 1.5
    axes.errorbar(places, values, errors, fmt="o", markersize=size, color=colour, elinewidth=0.8, label=label)
