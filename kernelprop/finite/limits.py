"""What the width laws of a comparison say together: the largest limit and the worst fit, beside what chance gives."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy import special

from kernelprop.finite.comparison import Comparison
from kernelprop.finite.measures import SCALARS
from kernelprop.finite.scheme import MATRICES
from kernelprop.finite.width_law import WidthLaw

# What is a mean over networks at infinite width and at any other. Observables are not: E f(S) is not f(E S).
LINEAR = ("kernels", "diagonal", *MATRICES)
# How often chance alone gives more than the number that is told beside a largest one.
OFTEN = 0.05


class Largest(NamedTuple):
    """The largest of ``among`` numbers, where it is, and what the largest of as many independent ones reaches.

    ``chance`` is what chance alone exceeds in 1 of 20 comparisons; fewer draws, whose errors are known less well, give
    more.
    """

    value: float
    place: str
    among: int
    chance: float


def left_out(comparison: Comparison) -> tuple[str, ...]:
    """The names that a limit says nothing of: what isn't linear in the kernel, and queries at first order.

    An observable is measured in each network and then averaged. That differs from the observable of the mean kernel by
    ``L/d`` and its powers, so that ``limit + slope/d`` leaves a limit at widths that aren't far above ``L``.
    """
    names = tuple(name for name in SCALARS if name in comparison.predicted)
    exact = comparison.query_exact
    return names if exact is None or exact.all() else (*names, "query")


def largest_limit(comparison: Comparison) -> Largest | None:
    """The largest limit among kernels, diagonals and gradient norms, in units of its standard error.

    None for a single width. ``chance`` is Student's, with the draws of the width that has fewest.
    """
    found = _largest(comparison, lambda law: np.abs(law.limit_z()), 1)
    return found and found._replace(chance=float(np.sqrt(found.chance)))


def worst_fit(comparison: Comparison) -> Largest | None:
    """The largest ``χ²`` per degree of freedom of ``limit + slope/d`` among the same numbers.

    None below three widths, which any numbers fit.
    """
    freedom = len(comparison.widths) - 2
    return _largest(comparison, lambda law: law.misfit, freedom) if freedom > 0 else None


def _largest(comparison: Comparison, of: Callable[[WidthLaw], np.ndarray], freedom: int) -> Largest | None:
    if len(comparison.widths) < 2:
        return None
    worst, count = (-1.0, ""), 0
    for name in (name for name in LINEAR if name in comparison.predicted):
        values = of(comparison.width_law(name))
        counted = _counted(comparison, name) & np.isfinite(values)
        count += int(counted.sum())
        if counted.any():
            index = np.unravel_index(np.argmax(np.where(counted, values, -1.0)), values.shape)
            worst = max(worst, (float(values[index]), comparison.place(name, [int(k) for k in index])))
    if not count:
        return None
    chance = special.fdtri(freedom, int(comparison.draws.min()) - 1, (1 - OFTEN) ** (1 / count))
    return Largest(*worst, count, float(chance))


def _counted(comparison: Comparison, name: str) -> np.ndarray:
    """Which entries say something, and not what another one says."""
    # Keys that never move agree with anything.
    counted = (comparison.measured[name] != 0).any(0)
    if name == "kernels":  # they are symmetric, and diagonals stand apart
        counted &= np.triu(np.ones(counted.shape[1:], bool), 1)
    if name == "query" and comparison.query_exact is not None:
        counted &= comparison.query_exact
    return counted
