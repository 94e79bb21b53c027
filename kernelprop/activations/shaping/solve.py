"""Solve the four conditions of DKS or of smooth TAT for the parameters of a shaped activation.

For given ``(input_scale, input_shift)`` two of the conditions give ``output_shift`` and ``output_scale`` in closed
form; two equations in two unknowns are left. Every root within the survey is found. Of those whose shift is at most
1.5 times the length over which the function bends (if there are none, of all) the one with the smallest output_scale
is taken, and where several agree in that (mirror images, periods) the one with the least shift, the positive one of
two. The restriction matters for deep TAT: with GELU from some 30 layers on there are roots that keep to the straight
part of the function and meet ``C''(1) = tau/n`` by its bend some three standard deviations out.
"""

from functools import lru_cache, partial

import numpy as np

from kernelprop.activations.base import Activation
from kernelprop.activations.integrand import Integrand, integrand
from kernelprop.activations.numeric import Numeric
from kernelprop.activations.sampling import sample_jet
from kernelprop.activations.shaping.conditions import Conditions
from kernelprop.activations.shaping.moments import Moments, accurate_moments, coarse_moments
from kernelprop.activations.shaping.search import distinct, newton, sign_changes, survey
from kernelprop.activations.shaping.shaped import Affine

RESIDUAL = 1e-10
# Roots with a larger shift, in the function's own length, bend it in the tail of the input only.
NEAR = 1.5
Root = tuple[float, float, float, float]


def solve(phi: Activation, conditions: Conditions) -> Affine:
    """Return ``phi`` with the parameters that meet the conditions, residuals re-checked below 1e-10.

    Raises:
        ValueError: when no parameters do, with the largest target that would be reached.
    """
    seen = integrand(phi.function, phi.kinks) if isinstance(phi, Numeric) else integrand(phi)
    length = _own_length(seen)
    a, b, moments = _surveyed(seen, length)
    roots: list[Root] = []
    for sign in conditions.branches:
        starts = _starts(conditions, sign, a, b, moments)
        roots += _polish(seen, conditions, sign, *starts, length)
    if not roots:
        raise ValueError(_unreachable(phi, conditions, moments))
    return Affine(phi, *_documented(roots, length))


@lru_cache(maxsize=16)
def _surveyed(seen: Integrand, length: float) -> tuple[np.ndarray, np.ndarray, Moments]:
    """The survey of a function, which is the same for every target."""
    return survey(partial(coarse_moments, seen.function), length)


def _documented(roots: list[Root], length: float) -> Root:
    near = [root for root in roots if abs(root[1]) <= NEAR * length] or roots
    scale = min(root[3] for root in near)
    # Mirror images and periods: the least shift, and of two opposite ones the positive.
    alike = [root for root in near if root[3] <= scale * (1 + 1e-8)]
    return min(alike, key=lambda root: (round(abs(root[1]) / length, 6), -root[1]))


def _starts(conditions: Conditions, sign: int, a: np.ndarray, b: np.ndarray, moments: Moments):
    with np.errstate(all="ignore"):
        first, second = conditions.equations(moments, sign)
    cells = sign_changes(first) & sign_changes(second)
    return np.sqrt(a[:-1, :-1] * a[1:, 1:])[cells], ((b[:-1, :-1] + b[1:, 1:]) / 2)[cells]


def _polish(
    seen: Integrand, conditions: Conditions, sign: int, a: np.ndarray, b: np.ndarray, length: float
) -> list[Root]:
    def equations(moments: Moments) -> tuple[np.ndarray, np.ndarray]:
        return conditions.equations(moments, sign)

    if not len(a):
        return []
    coarse = partial(coarse_moments, seen.function)
    accurate = partial(accurate_moments, seen.function, seen.ends)
    a, b = distinct(*newton(coarse, equations, a, b, length, 10), length)
    if not len(a):
        return []
    a, b = distinct(*newton(accurate, equations, a, b, length, 4), length)
    if not len(a):
        return []
    moments = accurate(a, b)
    with np.errstate(all="ignore"):
        shift, scale = conditions.output(moments, sign)
        residuals = np.abs(conditions.residuals(moments, shift, scale)).max(axis=0)
    good = (residuals < RESIDUAL) & np.isfinite(scale)
    return list(zip(*(values[good].tolist() for values in (a, b, shift, scale)), strict=True))


def _own_length(seen: Integrand) -> float:
    """The distance over which the slope changes, as a power of two, so that the survey suits the function."""
    middles = (seen.ends[:-1] + seen.ends[1:]) / 2
    points = np.concatenate([middles, np.linspace(-4, 4, 65)])
    with np.errstate(all="ignore"):
        _, first, second = np.abs(sample_jet(seen.function, points))
    first, second = (np.where(np.isfinite(values), values, 0).max() for values in (first, second))
    return float(2.0 ** np.clip(np.round(np.log2(0.5 * first / second)), -20, 8)) if second > 0 else 1.0


def _unreachable(phi: Activation, conditions: Conditions, moments: Moments) -> str:
    ceilings = []
    for sign in conditions.branches:
        with np.errstate(all="ignore"):
            first, _ = conditions.equations(moments, sign)
            reached = conditions.reached(moments)[:-1, :-1][sign_changes(first)]
        ceilings += reached[np.isfinite(reached)].tolist()
    if not ceilings:
        return (
            f"activation: {phi.name} can't be shaped by {conditions.label}: no input_scale and input_shift give "
            "Q'(1) = 1; use another activation"
        )
    low, high = (conditions.target(value) for value in (min(ceilings), max(ceilings)))
    return (
        f"{conditions.parameter}: the target can't be reached by shaping {phi.name}; with Q'(1) = 1 the reachable "
        f"ceiling is about {high:.3g} (from about {low:.3g}): use another depth or target"
    )
