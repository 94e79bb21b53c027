"""Kernel matrices at chosen depths, side by side on one colour scale."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from kernelprop import observables
from kernelprop.plotting.style import PAGE, SEQUENTIAL, in_house_style, new_figure
from kernelprop.results import Evolution

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PANELS = 5


@in_house_style
def kernel_heatmaps(
    evolution: Evolution,
    depths: Sequence[int] | None = None,
    *,
    show: Literal["correlation", "kernel"] = "correlation",
    batch: int = 0,
) -> "Figure":
    """Draw the kernel at some depths as heat maps on one colour scale.

    Args:
        evolution: the kernels.
        depths: kept depths; by default up to five, from the first to the last.
        show: ``"correlation"`` (the diagonal is 1 at every depth, a collapsed kernel all 1), or ``"kernel"``,
            whose entries also shrink and grow.
        batch: which kernel of a batch, counted over its flattened leading axes.

    Returns:
        A figure of page width. Undefined correlations are grey.

    Raises:
        ValueError: for a depth whose kernel was not kept, or another ``show``.
    """
    if show not in ("correlation", "kernel"):
        raise ValueError(f"show: {show!r} is unknown; use 'correlation' or 'kernel'")
    chosen = spread(evolution.depth, PANELS) if depths is None else list(depths)
    matrices = [_matrix(evolution, depth, batch, show) for depth in chosen]
    rows, columns = int(np.ceil(len(chosen) / PANELS)), min(len(chosen), PANELS)
    side = min(PAGE / (columns + 0.6), 2.4)
    figure = new_figure(PAGE if columns > 2 else side * (columns + 0.6), 0.5 + rows * (side + 0.25))
    grid = np.atleast_1d(np.asarray(figure.subplots(rows, columns, squeeze=False)))
    image: Any = None
    for axes in grid.flat[len(chosen) :]:
        axes.set_visible(False)
    for number, (axes, matrix, depth) in enumerate(zip(grid.flat, matrices, chosen, strict=False)):
        axes.set_facecolor("0.8")
        image = axes.imshow(matrix, interpolation="nearest", **_scale(matrices, show))
        axes.set_title(f"depth {_named(depth, evolution)}")
        axes.spines[:].set_visible(False)
        _label(axes, first_column=number % columns == 0, last_row=number + columns >= len(chosen))
    label = r"correlation $c_{ij}$" if show == "correlation" else r"kernel $\Sigma_{ij}$"
    figure.colorbar(image, ax=grid.ravel().tolist(), label=label, shrink=0.9, aspect=18, pad=0.02)
    return figure


def spread(depths: np.ndarray, number: int) -> list[int]:
    """Return up to ``number`` of the depths, evenly from the first to the last."""
    index = np.unique(np.linspace(0, len(depths) - 1, min(number, len(depths))).round().astype(int))
    return [int(depth) for depth in depths[index]]


def _named(depth: int, evolution: Evolution) -> int:
    return depth + evolution.layers + 1 if depth < 0 else depth


def _matrix(evolution: Evolution, depth: int, batch: int, show: str) -> np.ndarray:
    kernels = evolution.kernel(depth).reshape(-1, evolution.length, evolution.length)
    if not 0 <= batch < len(kernels):
        raise ValueError(f"batch: {batch} is outside 0 to {len(kernels) - 1}")
    return observables.correlation(kernels[batch]) if show == "correlation" else kernels[batch]


def _scale(matrices: list[np.ndarray], show: str) -> dict[str, Any]:
    """One scale for all panels, from 0 or the lowest entry: brighter is always more correlated."""
    known = np.concatenate([matrix[np.isfinite(matrix)] for matrix in matrices])
    low, high = (float(known.min()), float(known.max())) if len(known) else (0.0, 1.0)
    return {"cmap": SEQUENTIAL, "vmin": min(0.0, low), "vmax": 1.0 if show == "correlation" else high or 1.0}


def _label(axes: Any, *, first_column: bool, last_row: bool) -> None:
    from matplotlib.ticker import MaxNLocator

    for axis, labelled in ((axes.xaxis, last_row), (axes.yaxis, first_column)):
        axis.set_major_locator(MaxNLocator(nbins=3, integer=True))
        axis.set_tick_params(labelbottom=labelled, labelleft=labelled)
        axis.set_label_text("position" if labelled else "")
