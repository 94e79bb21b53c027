"""ReLU and leaky ReLU: arc-cosine kernels (Cho and Saul, "Kernel methods for deep learning", 2009)."""

import math
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float

from kernelprop.activations.arccosine import arccosine, segment
from kernelprop.activations.base import ClosedForm
from kernelprop.activations.safe import correlation, root


class LeakyReLU(ClosedForm):
    """``max(x, 0) + s min(x, 0)`` with slope ``s``.

    ``K = sqrt(q1 q2) ((1+s^2)/2 c + (1-s)^2/(2 pi) (sqrt(1-c^2) - c arccos c))`` and
    ``Kdot = (1+s^2)/2 - (1-s)^2/(2 pi) arccos c``.
    """

    negative_slope: float | Array = 0.01

    @property
    def name(self) -> str:
        """``leaky_relu``."""
        return "leaky_relu"

    def __call__(self, x: Any, /) -> Array:
        """``x`` where it is positive, ``s x`` elsewhere."""
        x = jnp.asarray(x)
        return jnp.where(x >= 0, x, x * jnp.asarray(self.negative_slope, x.dtype))

    def dual(self, q1: Float[Array, "..."], q2: Float[Array, "..."], c: Float[Array, "..."]) -> Array:
        """``E[phi(u) phi(v)]``."""
        return rectifier_dual(self.negative_slope, q1, q2, c)

    def dual_derivative(self, q1: Float[Array, "..."], q2: Float[Array, "..."], c: Float[Array, "..."]) -> Array:
        """``E[phi'(u) phi'(v)]``, the same for every ``q1, q2``."""
        return rectifier_dual_derivative(self.negative_slope, q1, q2, c)

    def mean(self, q: Float[Array, "..."]) -> Float[Array, "..."]:
        """``(1-s) sqrt(q/(2 pi))``."""
        return (1 - self.negative_slope) * root(q) / math.sqrt(2 * math.pi)

    def second_moment(self, q: Float[Array, "..."]) -> Float[Array, "..."]:
        """``q (1+s^2)/2``."""
        return q * _half_square(self.negative_slope)

    def derivative_second_moment(self, q: Float[Array, "..."]) -> Float[Array, "..."]:
        """``(1+s^2)/2``."""
        return jnp.ones_like(q) * _half_square(self.negative_slope)


class ReLU(ClosedForm):
    """``max(x, 0)``: the leaky ReLU of slope 0."""

    @property
    def name(self) -> str:
        """``relu``."""
        return "relu"

    def __call__(self, x: Any, /) -> Array:
        """``max(x, 0)``."""
        x = jnp.asarray(x)
        return jnp.maximum(x, jnp.zeros((), x.dtype))

    def dual(self, q1: Float[Array, "..."], q2: Float[Array, "..."], c: Float[Array, "..."]) -> Array:
        """``E[phi(u) phi(v)] = sqrt(q1 q2) (c/2 + (sqrt(1-c^2) - c arccos c)/(2 pi))``."""
        return rectifier_dual(0.0, q1, q2, c)

    def dual_derivative(self, q1: Float[Array, "..."], q2: Float[Array, "..."], c: Float[Array, "..."]) -> Array:
        """``E[phi'(u) phi'(v)] = (pi - arccos c)/(2 pi)``."""
        return rectifier_dual_derivative(0.0, q1, q2, c)

    def mean(self, q: Float[Array, "..."]) -> Float[Array, "..."]:
        """``sqrt(q/(2 pi))``."""
        return root(q) / math.sqrt(2 * math.pi)

    def second_moment(self, q: Float[Array, "..."]) -> Float[Array, "..."]:
        """``q/2``."""
        return q / 2

    def derivative_second_moment(self, q: Float[Array, "..."]) -> Float[Array, "..."]:
        """``1/2``."""
        return jnp.full_like(q, 0.5)


def rectifier_dual(slope: float | Array, q1: Array, q2: Array, c: Array) -> Array:
    """``K`` of the leaky ReLU with this slope."""
    c = correlation(c)
    shape = _half_square(slope) * c + (1 - slope) ** 2 / (2 * math.pi) * segment(c)
    return root(q1) * root(q2) * shape


def rectifier_dual_derivative(slope: float | Array, q1: Array, q2: Array, c: Array) -> Array:
    """``Kdot`` of the leaky ReLU with this slope."""
    value = _half_square(slope) - (1 - slope) ** 2 / (2 * math.pi) * arccosine(correlation(c))
    return jnp.broadcast_to(value, jnp.broadcast_shapes(q1.shape, q2.shape, c.shape))


def _half_square(slope: float | Array) -> float | Array:
    return (1 + slope**2) / 2
