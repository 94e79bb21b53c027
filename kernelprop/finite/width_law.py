"""How a remainder falls with the width: ``limit + slope/d``, fitted with the errors of the measurements."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from kernelprop.results import Estimate


class WidthLaw(NamedTuple):
    """``remainder(d) = limit + slope/d``: a finite-width effect has the limit 0, an error of a formula has not.

    Attributes:
        limit: the remainder at infinite width.
        slope: what falls as ``1/d``.
        misfit: ``χ²`` of the fit over its degrees of freedom, ``widths − 2``; NaN for two widths, which always fit.
    """

    limit: Estimate
    slope: Estimate
    misfit: np.ndarray

    def limit_z(self) -> np.ndarray:
        """The limit in units of its standard error."""
        return self.limit.mean / self.limit.stderr


def fit_width_law(
    widths: Float[np.ndarray, "widths"],
    remainder: Float[np.ndarray, "widths ..."],
    stderr: Float[np.ndarray, "widths ..."],
    draws: int,
) -> WidthLaw:
    """Weighted least squares, entry by entry.

    Args:
        widths: at least two different ones.
        remainder: measured minus predicted.
        stderr: its standard error, positive.
        draws: the number of draws behind it, for the estimates to tell.

    >>> law = fit_width_law(np.array([10.0, 20.0]), np.array([0.3, 0.2]), np.array([0.01, 0.01]), 100)
    >>> round(float(law.limit.mean), 12), round(float(law.slope.mean), 12)
    (0.1, 2.0)
    """
    x = (1 / widths).reshape(-1, *(1,) * (remainder.ndim - 1))
    # Relative weights, so that errors of any size have squares.
    smallest = np.min(stderr, axis=0)
    weight = (smallest / stderr) ** 2
    total, first, second = (np.sum(weight * x**power, axis=0) for power in range(3))
    right, right_x = np.sum(weight * remainder, axis=0), np.sum(weight * x * remainder, axis=0)
    determinant = total * second - first**2
    limit = (second * right - first * right_x) / determinant
    slope = (total * right_x - first * right) / determinant
    freedom = len(widths) - 2
    squares = np.sum(((remainder - limit - slope * x) / stderr) ** 2, axis=0)
    return WidthLaw(
        Estimate(limit, smallest * np.sqrt(second / determinant), draws),
        Estimate(slope, smallest * np.sqrt(total / determinant), draws),
        squares / freedom if freedom else np.full(squares.shape, np.nan),
    )
