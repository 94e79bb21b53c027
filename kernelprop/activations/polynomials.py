"""The identity and the square: finite Hermite series."""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float

from kernelprop.activations.base import ClosedForm
from kernelprop.activations.safe import correlation, root


class Linear(ClosedForm):
    """``x``: ``K = c sqrt(q1 q2)``."""

    @property
    def name(self) -> str:
        """``linear``."""
        return "linear"

    def __call__(self, x: Any, /) -> Array:
        """``x``."""
        return jnp.asarray(x)

    def dual(self, q1: Float[Array, "..."], q2: Float[Array, "..."], c: Float[Array, "..."]) -> Array:
        """``c sqrt(q1 q2)``."""
        return correlation(c) * root(q1) * root(q2)

    def dual_derivative(self, q1: Float[Array, "..."], q2: Float[Array, "..."], c: Float[Array, "..."]) -> Array:
        """1."""
        return jnp.ones(jnp.broadcast_shapes(q1.shape, q2.shape, c.shape), c.dtype)

    def mean(self, q: Float[Array, "..."]) -> Float[Array, "..."]:
        """0, by symmetry."""
        return jnp.zeros_like(q)

    def second_moment(self, q: Float[Array, "..."]) -> Float[Array, "..."]:
        """``q``."""
        return q

    def derivative_second_moment(self, q: Float[Array, "..."]) -> Float[Array, "..."]:
        """1."""
        return jnp.ones_like(q)


class Square(ClosedForm):
    """``x^2``: ``K = q1 q2 (1 + 2 c^2)``."""

    @property
    def name(self) -> str:
        """``square``."""
        return "square"

    def __call__(self, x: Any, /) -> Array:
        """``x^2``."""
        return jnp.square(jnp.asarray(x))

    def dual(self, q1: Float[Array, "..."], q2: Float[Array, "..."], c: Float[Array, "..."]) -> Array:
        """``q1 q2 (1 + 2 c^2)``."""
        c = correlation(c)
        return q1 * q2 * (1 + 2 * c * c)

    def dual_derivative(self, q1: Float[Array, "..."], q2: Float[Array, "..."], c: Float[Array, "..."]) -> Array:
        """``4 c sqrt(q1 q2)``."""
        return 4 * correlation(c) * root(q1) * root(q2)

    def mean(self, q: Float[Array, "..."]) -> Float[Array, "..."]:
        """``q``."""
        return q

    def second_moment(self, q: Float[Array, "..."]) -> Float[Array, "..."]:
        """``3 q^2``."""
        return 3 * q * q

    def derivative_second_moment(self, q: Float[Array, "..."]) -> Float[Array, "..."]:
        """``4 q``."""
        return 4 * q
