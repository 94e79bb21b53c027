"""Axes of the page's charts: from a number to a place, and which numbers are written beside the axis."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

# Below what double precision can tell from nothing beside 1; a log axis does not go further.
DECADES = 18


@dataclass(frozen=True)
class Scale:
    """An axis from ``low`` to ``high``, linear or logarithmic.

    >>> Scale(1.0, 100.0, logarithmic=True).place(10.0)
    0.5
    """

    low: float
    high: float
    logarithmic: bool = False

    def place(self, value: float) -> float | None:
        """Where a number stands, 0 at the low end and 1 at the high one; None for what the axis lacks."""
        if not math.isfinite(value) or (self.logarithmic and value <= 0):
            return None
        low, high, at = (self._raw(number) for number in (self.low, self.high, value))
        return (at - low) / (high - low)

    def ticks(self, most: int = 6) -> list[float]:
        """Round numbers along the axis.

        >>> Scale(0.0, 1.0).ticks()
        [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
        >>> Scale(1e-8, 1.0, logarithmic=True).ticks()
        [1e-08, 1e-06, 0.0001, 0.01, 1.0]
        """
        if self.logarithmic:
            first, last = math.ceil(self._raw(self.low) - 1e-9), math.floor(self._raw(self.high) + 1e-9)
            step = max(1, math.ceil((last - first) / (most - 1)))
            return [float(f"1e{power}") for power in range(first, last + 1) if (power - last) % step == 0]
        step = _round_step((self.high - self.low) / (most - 1))
        first = math.ceil(self.low / step - 1e-9)
        return [round(n * step, 12) for n in range(first, math.floor(self.high / step + 1e-9) + 1)]

    def _raw(self, value: float) -> float:
        return math.log10(value) if self.logarithmic else value


def linear_scale(series: Sequence[np.ndarray], low: float, high: float) -> Scale:
    """A linear axis that shows at least ``low`` to ``high``, and all finite numbers."""
    finite = _finite(series)
    return Scale(float(min(low, finite.min(initial=low))), float(max(high, finite.max(initial=high))))


def log_scale(series: Sequence[np.ndarray]) -> Scale:
    """A logarithmic axis over whole decades around all positive numbers, at most `DECADES` of them from the top.

    Zeros have no place on it: they are gaps.
    """
    finite = _finite(series)
    positive = finite[finite > 0]
    if not len(positive):
        return Scale(0.1, 1.0, logarithmic=True)
    high = math.ceil(math.log10(positive.max()) - 1e-9)
    low = max(math.floor(math.log10(positive.min()) + 1e-9), high - DECADES)
    return Scale(10.0 ** min(low, high - 1), 10.0**high, logarithmic=True)


def depth_scale(first: int, layers: int) -> Scale:
    """The axis of depths ``0…L`` or layers ``1…L``; one layer alone stands in its middle."""
    return Scale(first, layers) if layers > first else Scale(first - 0.5, first + 0.5)


def depth_ticks(first: int, layers: int, most: int = 7) -> list[int]:
    """Whole numbers along a depth axis, its first and last among them.

    >>> depth_ticks(0, 24), depth_ticks(1, 24), depth_ticks(0, 3)
    ([0, 5, 10, 15, 20, 24], [1, 5, 10, 15, 20, 24], [0, 1, 2, 3])
    """
    step = max(1, round(_round_step(max(1, layers - first) / (most - 1))))
    inner = [n for n in range(0, layers, step) if n > first and n - first >= step / 2 and layers - n >= step / 2]
    return list(dict.fromkeys([first, *inner, layers]))


def tick_words(value: float, scale: Scale) -> str:
    """A tick as it is written: powers of ten on a log axis that is long, plain numbers else.

    >>> tick_words(1e-8, Scale(1e-8, 1.0, logarithmic=True)), tick_words(0.25, Scale(0.0, 1.0))
    ('1e-8', '0.25')
    """
    if scale.logarithmic and not 1e-3 <= value <= 1e3:
        return f"1e{round(math.log10(value))}"
    return f"{value:.10g}"


def _round_step(step: float) -> float:
    power = 10.0 ** math.floor(math.log10(step))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= step * (1 - 1e-9))


def _finite(series: Sequence[np.ndarray]) -> np.ndarray:
    joined = np.concatenate([np.ravel(values) for values in series]).astype(np.float64)
    return joined[np.isfinite(joined)]
