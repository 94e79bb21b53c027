"""Distributions of a weight matrix, each with an exact statement of its variance."""

from abc import abstractmethod
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from kernelprop.finite import threefry

# Standard deviation of N(0, 1) cut at ±2: sqrt(1 − 4 φ(2) / (2 Φ(2) − 1)).
TRUNCATED_STD = 0.8796256610342397504


class Shape(NamedTuple):
    """A weight ``(fan_in, fan_out)``; ``heads`` head share its columns, 0 where none do."""

    fan_in: int
    fan_out: int
    heads: int = 0


class Family(eqx.Module):
    """A distribution of matrices of unit gain; the network multiplies by the gain."""

    @abstractmethod
    def variance(self, shape: Shape) -> float:
        """The variance of one entry, exact; every entry has mean zero."""

    @abstractmethod
    def draw(self, key: Array, shape: Shape, dtype: jnp.dtype) -> Float[Array, "fan_in fan_out"]:
        """One matrix."""


class Gaussian(Family):
    """Independent ``N(0, 1/fan_in)``.

    >>> Gaussian().variance(Shape(64, 256))
    0.015625
    """

    def variance(self, shape: Shape) -> float:
        """``1/fan_in``."""
        return 1 / shape.fan_in

    def draw(self, key: Array, shape: Shape, dtype: jnp.dtype) -> Float[Array, "fan_in fan_out"]:
        """One matrix."""
        return _scaled(threefry.normal(key, shape[:2], dtype), self.variance(shape))


class Truncated(Family):
    """Independent normals cut at two standard deviations, with the variance ``1/fan_in`` restored.

    Uncompensated, the cut would leave ``0.7737/fan_in``: in 12 layers a factor of 0.046.

    >>> Truncated().variance(Shape(64, 256))
    0.015625
    """

    def variance(self, shape: Shape) -> float:
        """``1/fan_in``."""
        return 1 / shape.fan_in

    def draw(self, key: Array, shape: Shape, dtype: jnp.dtype) -> Float[Array, "fan_in fan_out"]:
        """One matrix."""
        cut = threefry.truncated_normal(key, 2.0, shape[:2], dtype)
        return _scaled(cut, self.variance(shape) / TRUNCATED_STD**2)


class Xavier(Family):
    """Independent ``N(0, 2/(fan_in + fan_out))`` (Glorot and Bengio 2010).

    For queries, keys and values the fan-out is a matter of how they are stored: ``"joint"``, all heads of one of
    the three; ``"head"``, one head; ``"packed"``, all heads of all three in one matrix. Other weights have one.

    >>> Xavier().variance(Shape(512, 512, heads=8)), Xavier("packed").variance(Shape(512, 512, heads=8))
    (0.001953125, 0.0009765625)
    """

    fan_out: str = eqx.field(static=True, default="joint")

    def __check_init__(self) -> None:
        if self.fan_out not in ("joint", "head", "packed"):
            raise ValueError(f"xavier: fan_out {self.fan_out!r} is unknown; use 'joint', 'head' or 'packed'")

    def variance(self, shape: Shape) -> float:
        """``2/(fan_in + fan_out)``."""
        counted = {"joint": shape.fan_out, "head": shape.fan_out // max(shape.heads, 1), "packed": 3 * shape.fan_out}
        # A weight that no heads share (heads = 0) has one fan-out.
        return 2 / (shape.fan_in + (counted[self.fan_out] if shape.heads else shape.fan_out))

    def draw(self, key: Array, shape: Shape, dtype: jnp.dtype) -> Float[Array, "fan_in fan_out"]:
        """One matrix."""
        return _scaled(threefry.normal(key, shape[:2], dtype), self.variance(shape))


class Zero(Family):
    """The zero matrix: queries at the initialisation of given attention.

    >>> Zero().variance(Shape(4, 4))
    0.0
    """

    def variance(self, shape: Shape) -> float:
        """0."""
        return 0.0

    def draw(self, key: Array, shape: Shape, dtype: jnp.dtype) -> Float[Array, "fan_in fan_out"]:
        """Zeros."""
        return jnp.zeros(shape[:2], dtype)


def _scaled(matrix: Array, variance: float) -> Array:
    return matrix * jnp.asarray(variance**0.5, matrix.dtype)
