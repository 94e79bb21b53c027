"""E-SPA and U-SPA attention: matrices at three layers, bias B and rescale D of their softmax form."""

import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from analysis.study import Found
from figures.frame import command
from figures.marks import bare
from kernelprop.plotting.style import PAGE, SEQUENTIAL, in_house_style, new_figure, shades

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAME = "attention_matrices"
TITLES = {"espa": "E-SPA", "uspa": "U-SPA"}
LEAST = 1e-3  # entries below share a colour


@in_house_style
def draw(found: Found) -> "Figure":
    """A row for each; zeros and masked entries are white."""
    from matplotlib.colors import LogNorm

    layers = found.study.layers
    figure = new_figure(PAGE, 3.3)
    count = len(layers)
    widths = (*[1] * count, 1, 1.35)
    grid: Any = figure.subplots(len(TITLES), count + 2, squeeze=False, gridspec_kw={"width_ratios": widths})
    matrices = biases = None
    for row, (point, title) in zip(grid, TITLES.items(), strict=True):
        of = found.at(point)
        for axes, layer, matrix in zip(row, layers, of["matrices"], strict=False):
            shown = np.ma.masked_where(~of["mask"], np.maximum(matrix, LEAST))
            matrices = axes.imshow(shown, norm=LogNorm(LEAST, 1), cmap=SEQUENTIAL, interpolation="nearest")
            bare(axes)
            axes.set_title(f"A, layer {layer}")
        row[0].set_ylabel(title)
        middle = count // 2
        shown = np.ma.masked_where(~of["mask"], of["bias"][middle])
        biases = row[-2].imshow(shown, cmap=SEQUENTIAL, vmin=np.log(LEAST), vmax=0, interpolation="nearest")
        bare(row[-2])
        row[-2].set_title(f"B, layer {layers[middle]}")
        for layer, colour in zip(layers, shades(count), strict=True):
            row[-1].plot(np.arange(found.study.length), of["rescale"][layer - 1], color=colour, label=f"layer {layer}")
        row[-1].set_title("D")
        row[-1].set_ylim(bottom=0.9)
    grid[-1, -1].set_xlabel("position")
    # Above the lines of U-SPA, which start at 1, there is room at the left.
    grid[-1, -1].set_ylim(top=1.35 * grid[-1, -1].get_ylim()[1])
    grid[-1, -1].legend(loc="upper left", handlelength=1, borderaxespad=0)
    assert matrices is not None
    assert biases is not None
    small: dict[str, Any] = {"location": "bottom", "shrink": 0.5, "aspect": 25, "pad": 0.04}
    figure.colorbar(matrices, ax=list(grid[:, :count].ravel()), label=f"entry (≤ {LEAST:g} alike)", **small)
    small |= {"shrink": 1, "aspect": 12}
    figure.colorbar(biases, ax=list(grid[:, count]), label="bias", **small)
    return figure


if __name__ == "__main__":
    sys.exit(command(NAME))
