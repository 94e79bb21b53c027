"""The gradient norm of every weight against depth."""

from typing import TYPE_CHECKING

import numpy as np

from kernelprop.plotting.log_axis import drawn_exponents, set_log_limits
from kernelprop.plotting.style import COLOURS, MANY, PAGE, in_house_style, new_figure
from kernelprop.results import GradientNorms

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ATTENTION = ("query", "key", "value", "output")
MLP = ("mlp_in", "mlp_gate", "mlp_out")
NAMES = {
    "query": "$W_Q$",
    "key": "$W_K$",
    "value": "$W_V$",
    "output": "$W_O$",
    "mlp_in": "$W_1$",
    "mlp_gate": "$W_g$",
    "mlp_out": "$W_2$",
}
# Values and outputs agree, so that one line would hide the other.
STYLES = {"output": (0, (2, 2)), "mlp_out": (0, (2, 2))}


@in_house_style
def gradient_profile(norms: GradientNorms) -> "Figure":
    """Draw the expected squared gradient norm of every weight, layer by layer, on a logarithmic axis.

    Returns:
        A figure of page width: the attention's weights on the left, the MLP's on the right if there is one. A
        weight whose norm is 0 everywhere (keys while the queries are zero) is told in the legend; single zeros are
        gaps, as are those that overflow. Open circles mark queries taken at first order where that is not exact.
    """
    groups = [[name for name in group if getattr(norms, name) is not None] for group in (ATTENTION, MLP)]
    groups = [group for group in groups if group]
    figure = new_figure(PAGE if len(groups) > 1 else PAGE / 2, 2.8)
    panels = np.atleast_1d(figure.subplots(1, len(groups), sharey=True))
    colours: dict[str, str] = dict(zip((*ATTENTION, *MLP), COLOURS, strict=True))
    for axes, group in zip(panels, groups, strict=True):
        for name in group:
            _line(axes, name, norms, colours[name])
        axes.set_xlabel("layer")
        _layer_axis(axes, len(norms.query_exact))
        axes.legend(ncols=2, loc="lower left", bbox_to_anchor=(0, 1.0), borderaxespad=0.2, handlelength=2.4)
    _norm_axis(panels)
    panels[0].set_ylabel("$E\\,\\|\\partial\\,\\mathrm{loss}/\\partial W\\|_F^2$")
    return figure


def _line(axes: "Axes", name: str, norms: GradientNorms, colour: str) -> None:
    values = np.asarray(getattr(norms, name), float)
    layers = np.arange(1, len(values) + 1)
    positive = np.where((values > 0) & np.isfinite(values), values, np.nan)
    label = NAMES[name]
    if np.isnan(values).all() and norms.value is not None and np.isfinite(norms.value).all():
        label += " (no softmax form)"
    elif not np.isfinite(values).any():
        label += " (overflows)"
    elif not (values > 0).any():
        label += " (0)"
    style = STYLES.get(name, "-")
    marker = "o" if len(values) <= MANY else None
    axes.plot(layers, positive, color=colour, linestyle=style, marker=marker, label=label)
    inexact = ~np.asarray(norms.query_exact)
    if name == "query" and marker and inexact.any():
        axes.plot(layers[inexact], positive[inexact], "o", color=colour, markerfacecolor="white", label="_")


def _layer_axis(axes: "Axes", layers: int) -> None:
    from matplotlib.ticker import MaxNLocator

    margin = max(0.04 * layers, 0.2)
    axes.set_xlim(1 - margin, layers + margin)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=7, integer=True, min_n_ticks=1))


def _norm_axis(panels: np.ndarray) -> None:
    """The vertical axis that the panels share: all that is drawn, a twentieth of its height above and below."""
    from matplotlib.ticker import NullFormatter

    low, high = drawn_exponents(*panels) or (0.0, 1.0)
    missing = max(0.0, 1 - (high - low)) / 2
    margin = missing + 0.05 * (high - low)
    for axes in panels:
        set_log_limits(axes, low - margin, high + margin)
        axes.yaxis.set_minor_formatter(NullFormatter())
