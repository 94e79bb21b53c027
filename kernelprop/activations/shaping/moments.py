"""Gaussian moments of ``phi(a x + b)`` for many pairs ``(a, b)`` at once, ``x ~ N(0, 1)``."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.polynomial import legendre

from kernelprop.activations.sampling import sample_jet

EDGE = 13.0


class Moments(NamedTuple):
    """``phi(a x + b) = mean + linear x + r(x)``, ``r`` orthogonal to 1 and ``x``: a shaped activation is nearly
    linear, and no condition is then a difference of nearly equal numbers.
    """

    mean: np.ndarray
    linear: np.ndarray
    rest: np.ndarray  # E r^2
    rest_slope: np.ndarray  # E r'^2
    twist: np.ndarray  # E[x^2 r']
    mixed: np.ndarray  # E[x r r']
    tilt: np.ndarray  # E[x r'] = E r''
    curvature: np.ndarray  # E r''^2

    @property
    def variance(self) -> np.ndarray:
        """``E (phi - mean)^2``."""
        return self.linear**2 + self.rest

    @property
    def slope(self) -> np.ndarray:
        """``E (d phi/dx)^2``."""
        return self.linear**2 + self.rest_slope

    @property
    def slope_excess(self) -> np.ndarray:
        """``slope - variance``, never negative."""
        return self.rest_slope - self.rest

    @property
    def radial_excess(self) -> np.ndarray:
        """``E[x (phi - mean) d phi/dx] - variance``."""
        return self.linear * self.twist + self.mixed - self.rest


def coarse_moments(function: Callable, a: np.ndarray, b: np.ndarray) -> Moments:
    """Moments on one fixed rule: right for smooth functions and moderate ``a``, good for a survey."""
    nodes, weights = legendre.leggauss(40)
    x = 8 * nodes
    return _moments(function, a, b, x, 8 * weights * _density(x))


def accurate_moments(function: Callable, ends: np.ndarray, a: np.ndarray, b: np.ndarray) -> Moments:
    """Moments on intervals that end where the function changes, ``ends`` in its own argument."""
    moved = np.clip((ends - b[..., None]) / a[..., None], -EDGE, EDGE)
    gaussian = np.broadcast_to(np.array([-EDGE, -10, *range(-8, 9), 10, EDGE]), (*a.shape, 21))
    low = np.sort(np.concatenate([moved, gaussian], axis=-1))
    low, half = low[..., :-1, None], np.diff(low)[..., None] / 2
    nodes, weights = legendre.leggauss(16)
    x = (low + half * (1 + nodes)).reshape(*a.shape, -1)
    weight = (half * weights).reshape(*a.shape, -1)
    return _moments(function, a, b, x, weight * _density(x))


def _moments(function: Callable, a: np.ndarray, b: np.ndarray, x: np.ndarray, weights: np.ndarray) -> Moments:
    with np.errstate(all="ignore"):
        value, first, second = sample_jet(function, a[..., None] * x + b[..., None])

        def expect(of: np.ndarray) -> np.ndarray:
            return (weights * of).sum(axis=-1)

        mean = expect(value)
        linear = expect(x * (value - mean[..., None]))
        rest = value - mean[..., None] - linear[..., None] * x
        rest_slope = a[..., None] * first - linear[..., None]
        return Moments(
            mean=mean,
            linear=linear,
            rest=expect(rest**2),
            rest_slope=expect(rest_slope**2),
            twist=expect(x**2 * rest_slope),
            mixed=expect(x * rest * rest_slope),
            tilt=expect(x * rest_slope),
            curvature=a**4 * expect(second**2),
        )


def _density(x: np.ndarray) -> np.ndarray:
    return np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi)
