"""Mean and spread of a stream of vectors, without keeping them (Welford; merged by Chan, Golub and LeVeque)."""

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float


class Moments(NamedTuple):
    """The number of draws, their mean, and the sum of squared deviations from it; numpy or JAX arrays."""

    count: Any
    mean: Any
    squares: Any

    def standard_error(self) -> np.ndarray:
        """``sqrt(Σ(x − mean)² / (n (n − 1)))``."""
        count = float(self.count)
        return np.sqrt(self.squares / (count * (count - 1)))


def nothing_yet(size: int) -> Moments:
    """The moments of no draw, for vectors of that size, in double precision."""
    zeros = jnp.zeros(size, jnp.float64)
    return Moments(jnp.zeros((), jnp.float64), zeros, zeros)


def of_batch(vectors: Float[Array, "n size"], counted: Bool[Array, "n"]) -> Moments:
    """The moments of those vectors that count."""
    count = jnp.sum(counted).astype(jnp.float64)
    mean = jnp.sum(jnp.where(counted[:, None], vectors, 0.0), axis=0) / jnp.maximum(count, 1.0)
    apart = jnp.where(counted[:, None], vectors - mean[None], 0.0)
    return Moments(count, mean, jnp.sum(apart**2, axis=0))


def merge(one: Moments, other: Moments) -> Moments:
    """The moments of two sets of draws together.

    >>> merge(Moments(1.0, 1.0, 0.0), Moments(1.0, 3.0, 0.0))
    Moments(count=2.0, mean=2.0, squares=2.0)
    """
    total = one.count + other.count
    share = other.count / (total + (total == 0))
    difference = other.mean - one.mean
    squares = one.squares + other.squares + difference**2 * (one.count * share)
    return Moments(total, one.mean + difference * share, squares)
