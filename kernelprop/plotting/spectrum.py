"""Eigenvalues of the kernel at chosen depths: how many directions carry it."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from kernelprop import observables
from kernelprop.plotting.heatmaps import spread
from kernelprop.plotting.style import COLUMN, GREY, MANY, in_house_style, new_figure, shades
from kernelprop.results import Evolution

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LINES = 6


@in_house_style
def spectrum(evolution: Evolution, depths: Sequence[int] | None = None, *, batch: int = 0) -> "Figure":
    """Draw each eigenvalue's share of the trace, largest first, on a logarithmic axis.

    Eigenvalues that the evolution lacks are computed from its kept kernels. A solver tells none below
    ``10 T eps`` of the largest from 0: that region is shaded, and lines end where they enter it.

    Args:
        evolution: the kernels.
        depths: by default up to six, from the first to the last.
        batch: which kernel of a batch, counted over its flattened leading axes.

    Raises:
        ValueError: for a depth without eigenvalues or a kept kernel.
    """
    available = evolution.depth if evolution.eigenvalues is None else np.arange(evolution.layers + 1)
    chosen = spread(available, LINES) if depths is None else [d % (evolution.layers + 1) for d in depths]
    figure = new_figure(COLUMN, 2.9)
    axes = figure.subplots()
    index = np.arange(1, evolution.length + 1)
    rounding = 10 * evolution.length * float(np.finfo(evolution.kernels.dtype).eps)
    lowest = 1.0
    for depth, colour in zip(chosen, shades(len(chosen)), strict=True):
        share = _share(evolution, depth, batch)
        told = np.where(share > rounding, share, np.nan)
        lowest = min(lowest, float(np.nanmin(told, initial=1.0)))
        marker = "o" if len(index) <= MANY or np.isfinite(told).sum() == 1 else None
        label = f"depth {depth}" if np.isfinite(share).any() else f"depth {depth}: 0"
        axes.plot(index, told, color=colour, marker=marker, markersize=2.5, label=label)
    _finish(axes, lowest, rounding)
    figure.legend(loc="outside upper center", ncols=3, handlelength=1.4, columnspacing=1.2)
    return figure


def _share(evolution: Evolution, depth: int, batch: int) -> np.ndarray:
    if evolution.eigenvalues is not None:
        values = evolution.eigenvalues[..., depth, :].reshape(-1, evolution.length)
    else:
        values = observables.eigenvalues(evolution.kernel(depth)).reshape(-1, evolution.length)
    if not 0 <= batch < len(values):
        raise ValueError(f"batch: {batch} is outside 0 to {len(values) - 1}")
    total = values[batch].sum()
    return values[batch] / total if total > 0 else np.full(evolution.length, np.nan)


def _finish(axes: "Axes", lowest: float, rounding: float) -> None:
    from matplotlib.ticker import MaxNLocator

    axes.set_yscale("log")
    bottom = rounding / 30 if lowest < 1e3 * rounding else lowest / 3
    axes.set_ylim(bottom, 2.0)
    if bottom < rounding:
        axes.axhspan(bottom, rounding, color=GREY, alpha=0.2, linewidth=0)
        middle = np.sqrt(bottom * rounding)
        axes.text(0.98, middle, "below rounding", transform=axes.get_yaxis_transform(), ha="right", va="center")
    axes.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True, min_n_ticks=1))
    axes.set_xlabel("eigenvalue, largest first")
    axes.set_ylabel(r"share of the trace $\lambda_k\,/\,\mathrm{tr}\,\Sigma$")
