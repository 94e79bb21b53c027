"""Means of independent draws with their standard errors."""

from typing import NamedTuple

import numpy as np


class Mean(NamedTuple):
    """A mean over draws, its standard error, and the number of draws."""

    value: np.ndarray
    stderr: np.ndarray
    draws: int


def mean(samples: np.ndarray) -> Mean:
    """Over the leading axis."""
    values = np.asarray(samples, np.float64)
    return Mean(values.mean(0), values.std(0, ddof=1) / np.sqrt(len(values)), len(values))


def ratio(above: np.ndarray, below: np.ndarray) -> Mean:
    """The ratio of two means of paired draws, its error by linearisation."""
    top, bottom = np.asarray(above, np.float64), np.asarray(below, np.float64)
    value = top.mean(0) / bottom.mean(0)
    rest = (top - value * bottom) / bottom.mean(0)
    return Mean(value, rest.std(0, ddof=1) / np.sqrt(len(top)), len(top))
