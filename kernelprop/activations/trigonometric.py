"""sin and cos: ``E[sin u sin v] = e^{-(q1+q2)/2} sinh r``, ``E[cos u cos v] = e^{-(q1+q2)/2} cosh r``."""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float

from kernelprop.activations.base import ClosedForm
from kernelprop.activations.safe import correlation, root


class Sin(ClosedForm):
    """``sin(x)``."""

    @property
    def name(self) -> str:
        """``sin``."""
        return "sin"

    def __call__(self, x: Any, /) -> Array:
        """``sin(x)``."""
        return jnp.sin(jnp.asarray(x))

    def dual(self, q1: Float[Array, "..."], q2: Float[Array, "..."], c: Float[Array, "..."]) -> Array:
        """``E[phi(u) phi(v)]``."""
        return _sines(q1, q2, c)

    def dual_derivative(self, q1: Float[Array, "..."], q2: Float[Array, "..."], c: Float[Array, "..."]) -> Array:
        """``E[phi'(u) phi'(v)]``."""
        return _cosines(q1, q2, c)

    def mean(self, q: Float[Array, "..."]) -> Float[Array, "..."]:
        """0, by symmetry."""
        return jnp.zeros_like(q)

    def second_moment(self, q: Float[Array, "..."]) -> Float[Array, "..."]:
        """``(1 - e^{-2q})/2``."""
        return -jnp.expm1(-2 * q) / 2

    def derivative_second_moment(self, q: Float[Array, "..."]) -> Float[Array, "..."]:
        """``(1 + e^{-2q})/2``."""
        return (1 + jnp.exp(-2 * q)) / 2


class Cos(ClosedForm):
    """``cos(x)``."""

    @property
    def name(self) -> str:
        """``cos``."""
        return "cos"

    def __call__(self, x: Any, /) -> Array:
        """``cos(x)``."""
        return jnp.cos(jnp.asarray(x))

    def dual(self, q1: Float[Array, "..."], q2: Float[Array, "..."], c: Float[Array, "..."]) -> Array:
        """``E[phi(u) phi(v)]``."""
        return _cosines(q1, q2, c)

    def dual_derivative(self, q1: Float[Array, "..."], q2: Float[Array, "..."], c: Float[Array, "..."]) -> Array:
        """``E[phi'(u) phi'(v)]``."""
        return _sines(q1, q2, c)

    def mean(self, q: Float[Array, "..."]) -> Float[Array, "..."]:
        """``e^{-q/2}``."""
        return jnp.exp(-q / 2)

    def second_moment(self, q: Float[Array, "..."]) -> Float[Array, "..."]:
        """``(1 + e^{-2q})/2``."""
        return (1 + jnp.exp(-2 * q)) / 2

    def derivative_second_moment(self, q: Float[Array, "..."]) -> Float[Array, "..."]:
        """``(1 - e^{-2q})/2``."""
        return -jnp.expm1(-2 * q) / 2


def _sines(q1: Array, q2: Array, c: Array) -> Array:
    sign, size, factor = _growth(q1, q2, c)
    return -sign * factor * jnp.expm1(-2 * size) / 2


def _cosines(q1: Array, q2: Array, c: Array) -> Array:
    _, size, factor = _growth(q1, q2, c)
    return factor * (1 + jnp.exp(-2 * size)) / 2


def _growth(q1: Array, q2: Array, c: Array) -> tuple[Array, Array, Array]:
    """``sign r``, ``|r|`` and ``exp(|r| - (q1+q2)/2)``, which can't overflow."""
    roots = root(q1) * root(q2)
    c = correlation(c)
    # Not jnp.sign and jnp.abs: at r = 0 the slope of |r| must be that of one side, for the product to be right.
    sign = jnp.where(c < 0, -jnp.ones_like(c), jnp.ones_like(c))
    difference = root(q1) - root(q2)
    return sign, sign * c * roots, jnp.exp(-difference * difference / 2 - roots * (1 - sign * c))
