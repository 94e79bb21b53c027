"""What is measured of an example ``X (T, d)`` at one depth."""

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

SCALARS = ("mean_correlation", "rank_residual", "participation_ratio")


def kernel_of(x: Float[Array, "T d"]) -> Float[Array, "T T"]:
    """``X Xᵀ / d``."""
    return x @ x.T / jnp.asarray(x.shape[1], x.dtype)


def numbers(x: Float[Array, "T d"], kernel: Float[Array, "T T"]) -> dict[str, Float[Array, "*positions"]]:
    """``diagonal``, ``mean_correlation``, ``rank_residual``, ``participation_ratio``; NaN where undefined.

    The residual is read off ``X`` less its mean row, so that it stays meaningful below the root of rounding.
    """
    length = len(x)
    squares = jnp.sum(x**2, axis=1)
    total = jnp.sum(squares)
    apart = x - jnp.mean(x, axis=0, keepdims=True)
    diagonal = squares / jnp.asarray(x.shape[1], x.dtype)
    trace = jnp.sum(diagonal)
    return {
        "diagonal": diagonal,
        "mean_correlation": _mean_correlation(x, squares, length),
        "rank_residual": jnp.sqrt(jnp.sum(apart**2) / total),
        "participation_ratio": 1 / jnp.sum((kernel / trace) ** 2),
    }


def _mean_correlation(x: Array, squares: Array, length: int) -> Array:
    if length == 1:
        return jnp.full((), jnp.nan, x.dtype)
    direction = jnp.sum(x / jnp.sqrt(squares)[:, None], axis=0)
    return (jnp.sum(direction**2) - length) / (length * (length - 1))


def keep_kernel(
    buffer: Float[Array, "n T T"], kernel: Float[Array, "T T"], slot: Int[Array, ""], written: Array
) -> Float[Array, "n T T"]:
    """Write a kernel into its slot; one that isn't kept leaves the slot as it was."""
    return buffer.at[slot].set(jnp.where(written, kernel, buffer[slot]))
