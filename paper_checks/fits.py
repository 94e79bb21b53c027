"""Exponents with their standard errors."""

from typing import NamedTuple

import numpy as np


class Slope(NamedTuple):
    """A slope in logarithms and its standard error."""

    value: float
    stderr: float


def power_law(x: np.ndarray, y: np.ndarray, stderr: np.ndarray | None = None) -> Slope:
    """Fit ``log y = slope · log x + const`` by least squares, weighted by the errors of ``y`` where it has some.

    Without errors of its own the scatter about the line gives that of the slope.
    """
    logs, values = np.log(np.asarray(x, np.float64)), np.log(np.asarray(y, np.float64))
    errors = np.ones_like(values) if stderr is None else np.asarray(stderr) / np.asarray(y)
    weights = 1 / errors**2
    centre = np.sum(weights * logs) / np.sum(weights)
    spread = np.sum(weights * (logs - centre) ** 2)
    slope = np.sum(weights * (logs - centre) * values) / spread
    if stderr is not None:
        return Slope(float(slope), float(1 / np.sqrt(spread)))
    rest = values - slope * (logs - centre)
    freedom = max(len(logs) - 2, 1)
    return Slope(float(slope), float(np.sqrt(np.sum((rest - rest.mean()) ** 2) / freedom / spread)))
