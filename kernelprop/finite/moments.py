"""Mean and spread of a stream of numbers, without keeping them (Welford; merged by Chan, Golub and LeVeque)."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool


class Moments(NamedTuple):
    """The number of draws, their mean, and the sum of squared deviations from it, for every array of a tree."""

    count: Any
    mean: Any
    squares: Any

    def standard_error(self) -> Any:
        """``sqrt(Σ(x − mean)² / (n (n − 1)))`` of every array."""
        count = float(self.count)
        return jax.tree.map(lambda squares: np.sqrt(squares / (count * (count - 1))), self.squares)


def nothing_yet(tree: Any) -> Moments:
    """The moments of no draw, for numbers of the given shapes, in double precision."""
    zeros = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, jnp.float64), tree)
    return Moments(jnp.zeros((), jnp.float64), zeros, zeros)


def of_batch(values: Any, counted: Bool[Array, "n"]) -> Moments:
    """The moments of a batch along its leading axis, of those draws that count."""
    count = jnp.sum(counted).astype(jnp.float64)

    def mean(leaf: Array) -> Array:
        return jnp.sum(_chosen(leaf, counted), axis=0) / jnp.maximum(count, 1.0)

    def squares(leaf: Array, mean: Array) -> Array:
        return jnp.sum(_chosen(leaf - mean[None], counted) ** 2, axis=0)

    values = jax.tree.map(lambda leaf: leaf.astype(jnp.float64), values)
    means = jax.tree.map(mean, values)
    return Moments(count, means, jax.tree.map(squares, values, means))


def merge(one: Moments, other: Moments) -> Moments:
    """The moments of two sets of draws together; numpy or JAX arrays.

    >>> merge(Moments(1.0, 1.0, 0.0), Moments(1.0, 3.0, 0.0))
    Moments(count=2.0, mean=2.0, squares=2.0)
    """
    total = one.count + other.count
    share = other.count / (total + (total == 0))
    between = one.count * share

    def mean(a: Any, b: Any) -> Any:
        return a + (b - a) * share

    def squares(a: Any, b: Any, left: Any, right: Any) -> Any:
        return left + right + (b - a) ** 2 * between

    means = jax.tree.map(mean, one.mean, other.mean)
    return Moments(total, means, jax.tree.map(squares, one.mean, other.mean, one.squares, other.squares))


def _chosen(leaf: Array, counted: Array) -> Array:
    return jnp.where(counted.reshape(-1, *(1,) * (leaf.ndim - 1)), leaf, 0.0)
