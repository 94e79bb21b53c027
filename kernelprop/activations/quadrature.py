"""Gauss-Legendre rules for Gaussian expectations, on intervals that suit the function at each variance."""

from functools import lru_cache

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.polynomial import legendre

from kernelprop.activations.integrand import Integrand
from kernelprop.activations.safe import root

# In standard deviations. Beyond 13 the density is below 1e-37. Intervals of one resolve Hermite polynomials of
# degree 256, the coarse ones the density itself.
FINE = (*range(-9, 10), -10, 10, -11, 11, -13, 13)
COARSE = (0, -2, 2, -4, 4, -6, 6, -10, 10)
ORDER = 16
# What lies beyond so many deviations shows what a rule leaves out behind its ends.
TAIL = 11.0


# Down to 2^-26 standard deviations: features of width 1 are seen at variances up to 1e15.
OCTAVES = 26


@lru_cache(maxsize=1)
def graded_rule() -> tuple[np.ndarray, np.ndarray]:
    """Nodes ``x`` and weights, each ``(n,)``, that halve towards 0: for `Integrand.graded` at every variance."""
    side = np.concatenate([[0.0], 2.0 ** np.arange(-OCTAVES, 0), [end for end in sorted(FINE) if end > 0]])
    ends = np.concatenate([-side[:0:-1], side])
    points, weights = legendre.leggauss(ORDER)
    half = np.diff(ends)[:, None] / 2
    x = (ends[:-1, None] + half * (1 + points)).ravel()
    return x, (half * weights).ravel() * np.exp(-(x**2) / 2) * (2 * np.pi) ** -0.5


def line_rule(q: Float[Array, " P"], *functions: Integrand, order: int = ORDER) -> tuple[Array, Array]:
    """Nodes ``x`` and weights, each ``(P, n)``, for expectations of a product of these at ``sqrt(q) x``."""
    edge = max(FINE)
    inner = [scaled(function.ends, root(q)[:, None], edge) for function in functions]
    fine = jnp.broadcast_to(jnp.asarray(np.array(FINE), q.dtype)[None, :], (len(q), len(FINE)))
    return composite(jnp.concatenate([*inner, fine], axis=1), order)


def scaled(ends: np.ndarray | tuple[float, ...], scale: Float[Array, "*n 1"], edge: float) -> Float[Array, "*n ends"]:
    """``ends/scale``, within ``[-edge, edge]``; ``scale`` may be 0."""
    row = jnp.asarray(np.array(ends), scale.dtype)[(None,) * (scale.ndim - 1)]
    smallest = jnp.asarray(np.finfo(scale.dtype).tiny ** 0.5, scale.dtype)
    return jnp.clip(row / jnp.maximum(scale, smallest), -edge, edge)


def composite(ends: Float[Array, "*n ends"], order: int) -> tuple[Array, Array]:
    """Nodes and weights for the standard normal density of the rule with these interval ends, in any order."""
    ends = jnp.sort(ends, axis=-1)
    points, weights = (jnp.asarray(a, ends.dtype) for a in legendre.leggauss(order))
    lift = (None,) * ends.ndim
    half = (ends[..., 1:, None] - ends[..., :-1, None]) / 2
    nodes = ends[..., :-1, None] + half * (1 + points[lift])
    density = jnp.exp(-nodes * nodes / 2) * ((2 * np.pi) ** -0.5)
    weights = half * weights[lift] * density
    flat = (*ends.shape[:-1], -1)
    return nodes.reshape(flat), weights.reshape(flat)
