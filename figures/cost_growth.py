"""How time and memory grow with the size of the work, drawn from ``analysis/benchmarks/results/growth.json``.

``python -m figures.cost_growth`` draws what ``python -m analysis.benchmarks.growth`` measured.
"""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from analysis.benchmarks.writing import RESULTS
from figures.frame import HERE, keep
from figures.marks import few_ticks, plain_ticks
from kernelprop.plotting.style import COLOURS, GREY, PAGE, in_house_style, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NAME = "cost_growth"
RECORD = RESULTS / "growth.json"
COLUMNS = 3


@in_house_style
def draw(growths: list[dict[str, Any]]) -> "Figure":
    """A panel a quantity: measurements, and the theory's power through the last of them."""
    figure = new_figure(PAGE, 1.55 * -(-len(growths) // COLUMNS))
    grid = figure.subplots(-(-len(growths) // COLUMNS), COLUMNS).ravel()
    for axes, growth in zip(grid, growths, strict=False):
        _panel(axes, growth)
    for axes in grid[len(growths) :]:
        axes.set_axis_off()
    return figure


def _panel(axes: "Axes", growth: dict[str, Any]) -> None:
    sizes, values = np.array(growth["sizes"], float), np.array(growth["values"], float)
    colour = COLOURS[0] if growth["unit"] == "seconds" else COLOURS[1]
    axes.plot(sizes, values[-1] * (sizes / sizes[-1]) ** growth["theory"], "--", color=GREY)
    axes.plot(sizes, values, "o-", color=colour)
    axes.set_xscale("log")
    axes.set_yscale("log")
    plain_ticks(axes.xaxis, growth["sizes"][::2])
    axes.set_title(f"{growth['name']}\n{growth['exponent']:.2f} (theory {growth['theory']:g})", loc="left", fontsize=7)
    axes.set_xlabel(growth["against"])
    axes.set_ylabel("s" if growth["unit"] == "seconds" else growth["unit"])
    low, high = axes.get_ylim()
    if high < 12 * low:
        # A decade at least, so that slopes can be compared by eye.
        stretch = np.sqrt(12 * low / high)
        axes.set_ylim(low / stretch, high * stretch)
    if high < 100 * low:
        few_ticks(axes.yaxis)


def main(record: Path = RECORD, folder: Path = HERE) -> list[Path]:
    """Draw and write the figure.

    Raises:
        ValueError: where the measurements are missing, with the command that makes them.
    """
    if not record.is_file():
        raise ValueError(f"{record}: no such record; python -m analysis.benchmarks.growth makes it")
    return keep(draw(json.loads(record.read_text(encoding="utf-8"))["growths"]), NAME, folder)


if __name__ == "__main__":
    try:
        print("\n".join(map(str, main())))
    except ValueError as error:
        sys.exit(f"error: {error}")
