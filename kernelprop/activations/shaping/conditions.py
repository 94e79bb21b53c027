"""The conditions of DKS and of smooth TAT, as equations between Gaussian moments."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from kernelprop.activations.shaping.moments import Moments


@dataclass(frozen=True)
class Conditions:
    """A method: two equations for the input's parameters, and what they leave for the output's.

    ``branches`` are the signs that the mean of the output can take. ``reached`` is what the target is compared
    with, and ``target`` says in the user's own parameter what that would be.
    """

    label: str
    parameter: str
    branches: tuple[int, ...]
    equations: Callable[[Moments, int], tuple[np.ndarray, np.ndarray]]
    output: Callable[[Moments, int], tuple[np.ndarray, np.ndarray]]
    residuals: Callable[[Moments, np.ndarray, np.ndarray], np.ndarray]
    reached: Callable[[Moments], np.ndarray]
    target: Callable[[float], float]


def dks_conditions(excess: float, target: Callable[[float], float]) -> Conditions:
    """``E phi = 0, E phi^2 = 1, Q'(1) = 1, C'(1) = 1 + excess``.

    ``target(C'(1))`` is the network's slope, for the message when it can't be reached.
    """

    def equations(m: Moments, sign: int) -> tuple[np.ndarray, np.ndarray]:
        return m.radial_excess / m.variance, m.slope_excess / m.variance - excess

    def output(m: Moments, sign: int) -> tuple[np.ndarray, np.ndarray]:
        return -m.mean, 1 / np.sqrt(m.variance)

    def residuals(m: Moments, shift: np.ndarray, scale: np.ndarray) -> np.ndarray:
        mean, square, radial, slope = _of_output(m, shift, scale)
        return np.stack([mean, square - 1, radial - 1, slope - 1 - excess])

    return Conditions("DKS", "zeta", (1,), equations, output, residuals, lambda m: m.slope / m.variance, target)


def tat_conditions(curvature: float, target: Callable[[float], float]) -> Conditions:
    """``Q(1) = Q'(1) = C'(1) = 1, C''(1) = curvature``; the mean of the output has either sign.

    ``target(C''(1))`` is the network's curvature, for the message when it can't be reached.
    """

    def equations(m: Moments, sign: int) -> tuple[np.ndarray, np.ndarray]:
        mean = sign * np.sqrt(np.maximum(m.slope_excess, 0))
        radial = m.slope_excess - m.radial_excess - mean * m.tilt
        return radial / m.slope, m.curvature / m.slope - curvature

    def output(m: Moments, sign: int) -> tuple[np.ndarray, np.ndarray]:
        return sign * np.sqrt(np.maximum(m.slope_excess, 0)) - m.mean, 1 / np.sqrt(m.slope)

    def residuals(m: Moments, shift: np.ndarray, scale: np.ndarray) -> np.ndarray:
        _, square, radial, slope = _of_output(m, shift, scale)
        return np.stack([square - 1, radial - 1, slope - 1, scale**2 * m.curvature - curvature])

    return Conditions("TAT", "tau", (1, -1), equations, output, residuals, lambda m: m.curvature / m.slope, target)


def _of_output(m: Moments, shift: np.ndarray, scale: np.ndarray) -> tuple[np.ndarray, ...]:
    """``E phi, E phi^2, E[x phi phi'], E phi'^2`` of ``scale (phi + shift)``."""
    centre = m.mean + shift
    square = m.variance + centre**2
    radial = m.variance + m.radial_excess + centre * m.tilt
    return scale * centre, scale**2 * square, scale**2 * radial, scale**2 * m.slope
