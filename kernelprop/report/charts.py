"""Line charts as inline SVG, with their legends above them in HTML."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

from kernelprop.report.scales import Scale, depth_scale, depth_ticks, tick_words

WIDTH, HEIGHT = 400, 250
LEFT, RIGHT, TOP, BOTTOM = 50, 12, 10, 40
# Okabe and Ito's colours, which people of all kinds of colour vision tell apart; dashes tell lines apart in print.
COLOURS = ("#000000", "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
DASHES = ("", "6 3", "2 3", "8 3 2 3", "12 4", "4 2", "1 2")


@dataclass(frozen=True, eq=False)
class Line:
    """One line: its name in the legend, its values from the axis's first depth on, and its look by number."""

    name: str
    values: np.ndarray
    look: int


@dataclass(frozen=True, eq=False)
class Chart:
    """A chart over depths or layers.

    Attributes:
        title: what is drawn.
        axis: what the horizontal axis counts, ``"depth"`` or ``"layer"``.
        first: its first number, 0 or 1.
        lines: drawn in their order, the first on top.
        scale: the vertical axis.
        band: lower and upper values of a shaded band, and its name.
        threshold: a level that is marked, and its name.
    """

    title: str
    axis: str
    first: int
    lines: Sequence[Line]
    scale: Scale
    band: tuple[np.ndarray, np.ndarray, str] | None = None
    threshold: tuple[float, str] | None = None

    @property
    def layers(self) -> int:
        """The last number of the horizontal axis."""
        return self.first + len(self.lines[0].values) - 1


def figure(chart: Chart) -> str:
    """The chart as an HTML figure."""
    title = escape(chart.title)
    return (
        f'<figure class="chart"><figcaption>{title}</figcaption>{_legend(chart)}'
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{title}" data-left="{LEFT}" '
        f'data-width="{WIDTH - LEFT - RIGHT}" data-low="{_across(chart).low:g}" data-high="{_across(chart).high:g}">'
        f"{''.join(_inside(chart))}</svg></figure>"
    )


def _legend(chart: Chart) -> str:
    items = [f"{_swatch(line.look)}{escape(line.name)}" for line in chart.lines]
    if chart.band is not None:
        items.append(f'<span class="swatch band"></span>{escape(chart.band[2])}')
    if chart.threshold is not None:
        items.append(f'<span class="swatch threshold"></span>{escape(chart.threshold[1])}')
    listed = "".join(f"<li>{item}</li>" for item in items)
    return f'<ul class="legend">{listed}{_CURSOR}</ul>'


# The script that moves the mark shows what it means too.
_CURSOR = '<li class="mark" hidden><span class="swatch slider"></span>depth of the slider</li>'


def _swatch(look: int) -> str:
    return f'<svg class="swatch" viewBox="0 0 26 10" aria-hidden="true"><path d="M0 5H26" {_style(look)}/></svg>'


def _style(look: int) -> str:
    dash = DASHES[look % len(DASHES)]
    dashes = f' stroke-dasharray="{dash}"' if dash else ""
    return f'fill="none" stroke="{COLOURS[look % len(COLOURS)]}" stroke-width="2"{dashes}'


def _inside(chart: Chart) -> Iterator[str]:
    bottom, right = HEIGHT - BOTTOM, WIDTH - RIGHT
    for value in chart.scale.ticks():
        y = _y(chart, value)
        if y is not None:
            yield f'<path class="grid" d="M{LEFT} {y}H{right}"/>'
            yield f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{tick_words(value, chart.scale)}</text>'
    for depth in depth_ticks(chart.first, chart.layers):
        x = _x(chart, depth)
        yield f'<path class="tick" d="M{x} {bottom}v4"/>'
        yield f'<text x="{x}" y="{bottom + 17}" text-anchor="middle">{depth}</text>'
    yield f'<text x="{(LEFT + right) / 2:g}" y="{HEIGHT - 5}" text-anchor="middle">{chart.axis}</text>'
    if chart.band is not None:
        yield _band(chart, *chart.band[:2])
    if chart.threshold is not None and (y := _y(chart, chart.threshold[0])) is not None:
        yield f'<path class="threshold" d="M{LEFT} {y}H{right}"/>'
    yield f'<path class="axis" d="M{LEFT} {TOP}V{bottom}H{right}"/>'
    yield f'<path class="cursor" d="M0 {TOP}V{bottom}"/>'
    for line in reversed(chart.lines):
        yield from _line(chart, line)


def _line(chart: Chart, line: Line) -> Iterator[str]:
    """Pieces between gaps; a point alone between gaps is a dot."""
    pieces: list[list[str]] = [[]]
    for number, value in enumerate(line.values.tolist()):
        y = _y(chart, value)
        if y is None:
            pieces.append([])
        else:
            pieces[-1].append(f"{_x(chart, chart.first + number)} {y}")
    for piece in pieces:
        if len(piece) == 1:
            x, y = piece[0].split()
            yield f'<circle cx="{x}" cy="{y}" r="3" fill="{COLOURS[line.look % len(COLOURS)]}"/>'
        elif piece:
            yield f'<path d="M{"L".join(piece)}" {_style(line.look)}/>'


def _band(chart: Chart, low: np.ndarray, high: np.ndarray) -> str:
    points = []
    for values, order in ((low, 1), (high, -1)):
        numbered = list(enumerate(values.tolist()))[::order]
        points += [f"{_x(chart, chart.first + n)} {y}" for n, v in numbered if (y := _y(chart, v)) is not None]
    return f'<path class="band" d="M{"L".join(points)}Z"/>' if points else ""


def _across(chart: Chart) -> Scale:
    return depth_scale(chart.first, chart.layers)


def _x(chart: Chart, depth: float) -> float:
    place = _across(chart).place(depth)
    return round(LEFT + (place or 0.0) * (WIDTH - LEFT - RIGHT), 1)


def _y(chart: Chart, value: float) -> float | None:
    """None for what the axis lacks: not finite, not positive on a log axis, or beyond its ends."""
    place = chart.scale.place(value)
    if place is None or not -1e-9 <= place <= 1 + 1e-9:
        return None
    return round(HEIGHT - BOTTOM - place * (HEIGHT - BOTTOM - TOP), 1)
