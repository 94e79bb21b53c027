"""Where a function is smooth: intervals on each of which a polynomial of degree 15 follows it.

Fixed quadrature rules miss what lies between their nodes (a step of width 1/100, a bump of width 1/1000), and
comparing two orders doesn't help when both miss it. So the function itself is looked at, once: intervals are
halved until a polynomial through 16 points reproduces dense samples, features included down to a width of
about 1/2000 at ``|x| <= 2`` (4e-4 |x| beyond). Quadrature on these intervals then suits every variance.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.polynomial import legendre

REACH = 512.0  # 13 standard deviations at a variance of 1500
NODES = 16
TOLERANCE = 1e-11
SAMPLES = 8192
NARROW = 2.0**-24
NARROWEST = 2.0**-52
MOST_PANELS = 2000
WAVE = 2.0**-8  # Of longer intervals that don't do, many are waves rather than one kink.

# Of the largest value up to so far beyond a place: what a function that runs flat keeps of rounding there.
ROUNDING = 1024 * np.finfo(float).eps
NEARBY = 8.0

Sampler = Callable[[np.ndarray], np.ndarray]


class Size(NamedTuple):
    """How large a function is, by distance from 0: root mean square, and the largest value, up to there."""

    average: Sampler
    peak: Sampler


class Follows(NamedTuple):
    """Intervals on which a polynomial follows the function; what it misses on each, and what rounding would."""

    enough: np.ndarray
    error: np.ndarray
    noise: np.ndarray


class Unresolved(Exception):
    """A polynomial doesn't follow the function on ever shorter intervals around ``place``."""

    def __init__(self, low: float, high: float):
        super().__init__(low, high)
        self.low, self.high = low, high


def smooth_panels(sampler: Sampler, kinks: tuple[float, ...]) -> tuple[np.ndarray, tuple[float, ...]]:
    """Return the sorted ends of the intervals in ``[-REACH, REACH]`` and all kinks, found ones included.

    Raises:
        ValueError: when the function isn't finite, has more kinks than can be found, or isn't square integrable.
    """
    known = kinks
    for _ in range(16):
        try:
            return _balance(_resolve(sampler, known), known), known
        except Unresolved as place:
            known = tuple(sorted({*known, locate_kink(sampler, place.low, place.high)}))
    raise _undeclared(known[0])


def follows_octaves(sampler: Sampler) -> bool:
    """Whether a polynomial follows the function between any ``x`` and ``2x``, and so between 0 and a small one.

    Intervals that halve towards 0 then suit it at every scale. Four sets of them, shifted against each other, are
    looked at; a kink at 0 is between two.
    """
    for shift in 2.0 ** (np.arange(4) / 4):
        side = shift * np.concatenate([[0.0], 2.0 ** np.arange(-10, 10)])
        low, high = np.concatenate([side[:-1], -side[1:]]), np.concatenate([side[1:], -side[:-1]])
        if not _followed(sampler, low, high, SAMPLES >> 2, None)[0].enough.all():
            return False
    return True


def locate_kink(sampler: Sampler, low: float, high: float) -> float:
    """Find where, between ``low`` and ``high``, a function changes from its left branch to its right one."""
    width = high - low
    left, right = low - width, high + width
    f_ll, f_l, f_r, f_rr = sampler(np.array([left - width, left, right, right + width]))
    low, high = left, right
    for _ in range(3):
        points = np.linspace(low, high, 2050)
        from_left = f_l + (points - left) * ((f_l - f_ll) / width)
        from_right = f_r + (points - right) * ((f_rr - f_r) / width)
        values = sampler(points)
        on_right = np.abs(values - from_right) < np.abs(values - from_left)
        first = int(np.argmax(on_right)) if on_right.any() else len(points) - 1
        low, high = points[max(first - 1, 0)], points[first]
    if left <= round(left + 1.5 * width, 3) <= right:
        return round(left + 1.5 * width, 3) + 0.0
    for digits in range(13):
        if abs(round(high, digits) - high) <= 4e-14 * max(1.0, abs(high)) + 1e-14:
            return float(round(high, digits)) + 0.0
    return float((low + high) / 2)


def _resolve(sampler: Sampler, kinks: tuple[float, ...]) -> np.ndarray:
    # No round number is an end or is met by halving, so that a kink at one is seen inside an interval.
    top = 1.0371 * 2.0 ** np.arange(10)
    centre = [] if any(abs(k) < 1 for k in kinks) else [0.0271]
    ends = np.unique(np.concatenate([-top, centre, top, [k for k in kinks if abs(k) < top[-1]]]))
    low, high, done = ends[:-1], ends[1:], [ends]
    before, size = np.full(len(low), np.inf), None
    for depth in range(60):
        found, size = _followed(sampler, low, high, max(32, SAMPLES >> depth), size)
        # Halving takes what a smooth function misses down by powers of ten, and leaves rounding as it is.
        open_ = ~(found.enough | ((found.error <= found.noise) & (found.error > before / NODES)))
        low, high, before = low[open_], high[open_], found.error[open_]
        if not len(low):
            return np.unique(np.concatenate(done))
        wide = _not_narrow(low, high, kinks)
        low, high, before = low[wide], high[wide], before[wide]
        if sum(map(len, done)) + len(low) > MOST_PANELS:
            at = len(low) // 2
            raise (_fast if high[at] - low[at] > WAVE else _undeclared)(float(low[at]))
        middle = _inside(low, high)
        done.append(middle)
        low, high = np.concatenate([low, middle]), np.concatenate([middle, high])
        before = np.concatenate([before, before])
    return np.unique(np.concatenate(done))


def _followed(
    sampler: Sampler, low: np.ndarray, high: np.ndarray, samples: int, size: Size | None
) -> tuple[Follows, Size]:
    """Say on which intervals a polynomial follows the function, and how large the function is up to ``|x|``."""
    nodes, checks, matrix = _interpolation(samples)
    middle, half = (low + high)[:, None] / 2, (high - low)[:, None] / 2
    at_nodes, at_checks = sampler(middle + half * nodes), sampler(middle + half * checks)
    bad = ~np.isfinite(at_nodes).all(1) | ~np.isfinite(at_checks).all(1)
    if bad.any() and np.abs(middle[bad, 0]).min() < 32:
        place = middle[bad, 0][np.abs(middle[bad, 0]).argmin()]
        raise ValueError(f"activation: the function is not finite near x = {place:.6g}")
    with np.errstate(invalid="ignore", over="ignore"):
        error = np.abs(at_checks - at_nodes @ matrix.T).max(1)
        own = np.abs(at_nodes).max(1)
        if size is None:
            size = _running_size(middle + half * checks, half, at_checks)
        # What rounding x and f(x) makes of a straight line.
        slope = np.ptp(at_nodes, axis=1) / (high - low)
        rounding = 32 * np.finfo(float).eps * (own + slope * np.maximum(np.abs(low), np.abs(high)))
        tolerance = TOLERANCE * np.maximum(own, size.average(np.abs(middle[:, 0])))
        noise = ROUNDING * size.peak(np.abs(middle[:, 0]) + NEARBY)
    return Follows(bad | (error <= tolerance + rounding), error, noise), size


def _running_size(points: np.ndarray, half: np.ndarray, values: np.ndarray) -> Size:
    """Root mean square over ``|y| <= |x|``: a Gaussian weighs what is nearer 0 more, so less than this is small.

    Not less than 1e-25 of the largest value up to twice as far, so that underflow isn't taken for a kink.
    """
    outer = np.abs(points).ravel()
    order = np.argsort(outer)
    reach = outer[order]
    with np.errstate(invalid="ignore", over="ignore"):
        finite = np.where(np.isfinite(values), values, 0.0)
        mass = (np.square(finite) * (2 * half / points.shape[1])).ravel()[order]
        peak = np.maximum.accumulate(np.abs(finite).ravel()[order])
    total = np.concatenate([[0.0], np.cumsum(mass)])

    def largest(x: np.ndarray) -> np.ndarray:
        return peak[np.minimum(np.searchsorted(reach, x, side="left"), len(reach) - 1)]

    def average(x: np.ndarray) -> np.ndarray:
        found = np.sqrt(total[np.searchsorted(reach, x, side="right")] / (2 * np.maximum(x, reach[0])))
        return np.maximum(found, 1e-25 * largest(2 * x + 1))

    return Size(average, largest)


def _not_narrow(low: np.ndarray, high: np.ndarray, kinks: tuple[float, ...]) -> np.ndarray:
    """Drop intervals that end on a kink and are too short to matter; another short one is a kink not yet known."""
    at_kink = np.isin(low, kinks) | np.isin(high, kinks)
    scale = np.maximum(1.0, np.maximum(np.abs(low), np.abs(high)))
    short = (high - low) < NARROW * scale
    unknown = np.flatnonzero(short & ~at_kink & ~_near(low, high, kinks))
    if len(unknown):
        first = unknown[np.abs(low[unknown]).argmin()]
        raise Unresolved(float(low[first]), float(high[first]))
    return ~short | (at_kink & (high - low > NARROWEST * np.minimum(scale, 1.0)))


def _near(low: np.ndarray, high: np.ndarray, kinks: tuple[float, ...]) -> np.ndarray:
    if not kinks:
        return np.zeros(len(low), bool)
    middle = (low + high)[:, None] / 2
    return np.any(np.abs(middle - np.array(kinks)) < 4 * (high - low)[:, None], axis=1)


def _balance(ends: np.ndarray, kinks: tuple[float, ...]) -> np.ndarray:
    """Halve intervals more than twice as long as a neighbour: features blurred by smoothing stay resolved."""
    while True:
        width = np.diff(ends)
        free = ~np.isin(ends[1:-1], kinks)
        ratio = 2.2
        wide = np.zeros(len(width), bool)
        wide[:-1] |= free & (width[:-1] > ratio * width[1:])
        wide[1:] |= free & (width[1:] > ratio * width[:-1])
        if not wide.any() or len(ends) > MOST_PANELS:
            return ends
        ends = np.sort(np.concatenate([ends, _inside(ends[:-1], ends[1:])[wide]]))


def _inside(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    return low + 0.4871 * (high - low)


@lru_cache(maxsize=32)
def _interpolation(samples: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Gauss-Legendre nodes, check points (jittered, so that no lattice hides from them), and the map between."""
    nodes, weights = legendre.leggauss(NODES)
    jitter = np.random.default_rng(0).uniform(0.1, 0.9, samples)
    checks = -1 + 2 * (np.arange(samples) + jitter) / samples
    degrees = np.arange(NODES) + 0.5
    project = (legendre.legvander(nodes, NODES - 1) * degrees).T * weights
    return nodes, checks, legendre.legvander(checks, NODES - 1) @ project


def _fast(place: float) -> ValueError:
    return ValueError(
        f"activation: more than {MOST_PANELS} intervals are needed to follow the function up to |x| = {REACH:g}, as "
        f"many near x = {place:.6g}; if it is a wave, scale its argument down and put a gain in front of it; if it has "
        f"a kink or jumps there, declare it: kinks=({place:.9g},)"
    )


def _undeclared(place: float) -> ValueError:
    return ValueError(
        f"activation: no polynomial follows the function near x = {place:.9g}, however short the interval; "
        f"if it has a kink or jumps there, declare it: kinks=({place:.9g},)"
    )
