"""The house style: sizes, colours that colour-blind readers tell apart, and one way to make a figure."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

P = ParamSpec("P")
R = TypeVar("R")

COLUMN, PAGE = 3.5, 7.0  # inches
DOTS_PER_INCH = 200
MANY = 40  # points on a line above which it goes without markers

# Okabe and Ito (2008), without their yellow, which is too pale for lines.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
GREY = "#777777"
SEQUENTIAL = "cividis"

_SETTINGS: dict[Any, Any] = {
    "font.size": 8,
    "font.family": "DejaVu Sans",
    "text.usetex": False,
    "axes.titlesize": 8,
    "axes.labelsize": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.8,
    "legend.fontsize": 7.5,
    "legend.frameon": False,
    "lines.linewidth": 1.5,
    "lines.markersize": 3.5,
    "svg.hashsalt": "kernelprop",
}


@contextmanager
def house_style() -> Iterator[None]:
    """Apply the house settings for a while; a user's own settings come back afterwards."""
    import matplotlib

    with matplotlib.rc_context(_SETTINGS):
        yield


def in_house_style(function: Callable[P, R]) -> Callable[P, R]:
    """Draw with the house settings."""

    @wraps(function)
    def styled(*args: P.args, **kwargs: P.kwargs) -> R:
        with house_style():
            return function(*args, **kwargs)

    return styled


def new_figure(width: float, height: float) -> "Figure":
    """Return an empty figure on the Agg canvas, which needs no display."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), dpi=DOTS_PER_INCH, layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def line_colours(number: int) -> list[str]:
    """Return one colour a line: distinct ones for a few, shades from dark to light for a long sweep."""
    if number <= len(COLOURS):
        return list(COLOURS[:number])
    return shades(number)


def shades(number: int) -> list[str]:
    """Return ``number`` colours in order, dark to light, none too pale to see on white."""
    import matplotlib
    from matplotlib.colors import to_hex

    return [to_hex(colour) for colour in matplotlib.colormaps[SEQUENTIAL](np.linspace(0, 0.85, number))]


def whole_number_axis(axes: "Axes", last: int, label: str) -> None:
    """Set a horizontal axis that counts from 0 to ``last``, ticks at whole numbers."""
    from matplotlib.ticker import MaxNLocator

    margin = max(0.04 * last, 0.2)
    axes.set_xlim(-margin, last + margin)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=7, integer=True, min_n_ticks=1))
    axes.set_xlabel(label)
