"""Functions with an infinite slope at the end of their domain, with finite gradients there."""

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float


def root(x: Float[Array, "..."]) -> Float[Array, "..."]:
    """``sqrt(x)`` for ``x >= 0`` whose gradient at 0 is 0 instead of infinite."""
    positive = x > 0
    return jnp.where(positive, jnp.sqrt(jnp.where(positive, x, jnp.ones_like(x))), jnp.zeros_like(x))


def inverse_root(x: Float[Array, "..."]) -> Float[Array, "..."]:
    """``1/sqrt(x)`` for ``x >= 0``, and 0 instead of infinity at 0."""
    positive = x > 0
    return jnp.where(positive, 1 / jnp.sqrt(jnp.where(positive, x, jnp.ones_like(x))), jnp.zeros_like(x))


def correlation(c: Float[Array, "..."]) -> Float[Array, "..."]:
    """``c`` with rounding beyond +-1 taken off; the slope is 1 everywhere, the ends included."""
    return c - lax.stop_gradient(c - jnp.clip(c, -1, 1))


def one_minus_square(c: Float[Array, "..."]) -> Float[Array, "..."]:
    """``1 - c^2`` without cancellation near ``|c| = 1``."""
    return (1 - c) * (1 + c)
