"""Diagonal and correlations of a kernel: what ``O(T²)`` work reads off its entries."""

from typing import Any

import jax
import jax.numpy as jnp

from kernelprop import door
from kernelprop.observables.checked import of_kernels


@of_kernels
def diagonal(kernel: jax.Array) -> jax.Array:
    """Return ``q_i = S_ii``, shape ``(…, T)``: the mean square of every position."""
    return _diagonal(kernel)


@of_kernels
def diagonal_mean(kernel: jax.Array) -> jax.Array:
    """Return ``tr S / T``, shape ``(…)``."""
    return _diagonal(kernel).mean(-1)


@of_kernels
def diagonal_minimum(kernel: jax.Array) -> jax.Array:
    """Return the smallest ``S_ii``, shape ``(…)``."""
    return _diagonal(kernel).min(-1)


@of_kernels
def diagonal_maximum(kernel: jax.Array) -> jax.Array:
    """Return the largest ``S_ii``, shape ``(…)``."""
    return _diagonal(kernel).max(-1)


@of_kernels
def undefined_tokens(kernel: jax.Array) -> jax.Array:
    """Return where ``S_ii`` is not positive, bool ``(…, T)``: such a token has no correlation with any other.

    >>> undefined_tokens([[1.0, 0.0], [0.0, 0.0]])
    array([False,  True])
    """
    return ~(_diagonal(kernel) > 0)


@of_kernels
def correlation(kernel: jax.Array) -> jax.Array:
    """Return ``c_ij = S_ij / sqrt(S_ii S_jj)``, shape ``(…, T, T)``; 1 on the diagonal.

    An excess over 1 of a few ulp is rounding and becomes 1. The row and column of a zero token are NaN.

    Raises:
        ValueError: for numpy input that is not a kernel, such as ``|S_ij| > sqrt(S_ii S_jj)``.

    >>> correlation([[4.0, 1.0], [1.0, 1.0]])
    array([[1. , 0.5],
           [0.5, 1. ]])
    """
    return _correlation(kernel)


@of_kernels
def mean_correlation(kernel: jax.Array) -> jax.Array:
    """Return ``sum_{i != j} c_ij / (T (T - 1))``, shape ``(…)``.

    NaN where a token has zero norm, and for ``T = 1``, which has no pairs.

    >>> float(mean_correlation([[1.0, 0.2], [0.2, 1.0]]))
    0.2
    """
    length = kernel.shape[-1]
    if length == 1:
        return jnp.full_like(kernel[..., 0, 0], jnp.nan)
    pairs = jnp.broadcast_to(~jnp.eye(length, dtype=bool), kernel.shape)
    return jnp.where(pairs, _correlation(kernel), 0).sum((-2, -1)) / (length * (length - 1))


def mean_cosine(kernel: Any) -> Any:
    """Return the mean cosine between different positions: ``mean_correlation`` under its other name."""
    return mean_correlation(kernel)


def _diagonal(kernel: jax.Array) -> jax.Array:
    return jnp.diagonal(kernel, axis1=-2, axis2=-1)


def _correlation(kernel: jax.Array) -> jax.Array:
    diagonal = _diagonal(kernel)
    defined = diagonal > 0
    # The inner `where` keeps the gradient finite where the outer one throws the value away.
    ratio = kernel / _norms(jnp.where(defined, diagonal, 1))
    rounding = door.kernel_rounding(kernel.dtype, kernel.shape[-1])
    limited = jnp.where(jnp.abs(ratio) <= 1 + rounding, jnp.clip(ratio, -1, 1), ratio)
    limited = jnp.where(jnp.broadcast_to(jnp.eye(kernel.shape[-1], dtype=bool), kernel.shape), 1, limited)
    # Rounding is taken off the value; the slope stays that of the formula.
    value = ratio + jax.lax.stop_gradient(limited - ratio)
    both = defined[..., :, None] & defined[..., None, :]
    return jnp.where(both, value, jnp.nan)


def _norms(diagonal: jax.Array) -> jax.Array:
    """Return ``sqrt(q_i q_j)``, which is exactly ``q`` for two positions of one ``q``."""
    square = diagonal[..., :, None] * diagonal[..., None, :]
    limits = jnp.finfo(diagonal.dtype)
    safe = (square > limits.tiny) & (square < limits.max)
    root = jnp.sqrt(diagonal)
    return jnp.where(safe, jnp.sqrt(jnp.where(safe, square, 1)), root[..., :, None] * root[..., None, :])
