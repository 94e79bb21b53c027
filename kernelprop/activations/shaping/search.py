"""All common roots of two functions of ``(input_scale, input_shift)``: a survey, then Newton's method.

Nothing is random and nothing is restarted: the same roots come out every time.
"""

from collections.abc import Callable

import numpy as np

from kernelprop.activations.shaping.moments import Moments

Equations = Callable[[Moments], tuple[np.ndarray, np.ndarray]]
Measure = Callable[[np.ndarray, np.ndarray], Moments]

SETTLED = 1e-11
SCALES = np.geomspace(2e-4, 20.0, 48)
SHIFTS = np.sinh(np.linspace(-2.9, 2.9, 81) + 0.011)


def survey(measure: Measure, length: float) -> tuple[np.ndarray, np.ndarray, Moments]:
    """Moments over a grid of scales and shifts around a function's own length."""
    a, b = np.meshgrid(SCALES * length, SHIFTS * length, indexing="ij")
    return a, b, measure(a, b)


def sign_changes(values: np.ndarray) -> np.ndarray:
    """Cells of the grid, each with its neighbours, in which the values change sign."""
    positive = np.where(np.isfinite(values), values > 0, False)
    finite = np.isfinite(values)
    corners = [positive[i : i - 1 or None, j : j - 1 or None] for i in (0, 1) for j in (0, 1)]
    known = [finite[i : i - 1 or None, j : j - 1 or None] for i in (0, 1) for j in (0, 1)]
    mixed = np.any(corners, axis=0) & ~np.all(corners, axis=0) & np.all(known, axis=0)
    wide = np.pad(mixed, 1)
    rows, columns = mixed.shape
    return np.any([wide[i : i + rows, j : j + columns] for i in range(3) for j in range(3)], axis=0)


def newton(measure: Measure, equations: Equations, a: np.ndarray, b: np.ndarray, length: float, steps: int):
    """Newton's method in ``(log a, b/length)`` from many starts at once, slopes by differences.

    Of points that the last step still moved by more than half a length nothing comes back: they are on no root's way.
    """
    point, change = np.stack([np.log(a), b / length]), np.zeros((2, len(a)))
    for _ in range(steps):
        step = 1e-6
        probes = point[:, None, :] + step * np.array([[[0], [1], [0]], [[0], [0], [1]]])
        with np.errstate(all="ignore"):
            moments = measure(np.exp(probes[0]), probes[1] * length)
            first, second = equations(moments)
            slopes = [((r[1] - r[0]) / step, (r[2] - r[0]) / step) for r in (first, second)]
            (f_a, f_b), (g_a, g_b) = slopes
            determinant = f_a * g_b - f_b * g_a
            change = np.stack([f_b * second[0] - g_b * first[0], g_a * first[0] - f_a * second[0]]) / determinant
        change = np.where(np.isfinite(change), change, np.nan)
        size = np.maximum(1, np.abs(change).max(axis=0) / 0.5)
        point = point + change / size
        if np.nanmax(np.abs(change), initial=0.0) < SETTLED:
            break
    near = np.abs(change).max(axis=0) < 0.5
    return np.exp(point[0, near]), point[1, near] * length


def distinct(a: np.ndarray, b: np.ndarray, length: float) -> tuple[np.ndarray, np.ndarray]:
    """Keep one of each group of nearby points, and none that ran away."""
    kept: list[tuple[float, float]] = []
    inside = np.isfinite(a) & np.isfinite(b)
    for one, other in sorted(zip(a[inside].tolist(), b[inside].tolist(), strict=True)):
        if not any(abs(one / x - 1) < 1e-3 and abs(other - y) < 1e-3 * length for x, y in kept):
            kept.append((one, other))
    pairs = np.array(kept, float).reshape(len(kept), 2)
    return pairs[:, 0], pairs[:, 1]
