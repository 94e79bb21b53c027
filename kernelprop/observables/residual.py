"""The rank residual: how far the positions are from agreeing, without losing it to cancellation."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from kernelprop.observables.checked import of_arrays, of_kernels


@of_kernels
def centre(kernel: jax.Array) -> jax.Array:
    """Return ``C S C`` with ``C = I - 11'/T``, shape ``(…, T, T)``: the part that tells positions apart.

    Means are taken off twice: after the first pass what is left of them is rounding of the common part, and
    the second pass sees that remainder to full relative precision.

    >>> centre([[2.0, 1.0], [1.0, 2.0]])
    array([[ 0.5, -0.5],
           [-0.5,  0.5]])
    """
    return _centre(kernel)


@of_kernels
def rank_residual(kernel: jax.Array, centred: jax.Array | None = None) -> jax.Array:
    """Return ``sqrt(tr(C S C) / tr S)``, shape ``(…)``.

    It is the distance of ``X`` from equal rows in the Frobenius norm, relative to ``X`` (Dong et al. 2021):
    0 for equal rows, with gradient 0; NaN for the zero kernel.

    Args:
        kernel: ``S``, shape ``(…, T, T)``.
        centred: ``C S C`` where the caller carries it. From ``S`` alone nothing below
            ``rank_residual_floor(dtype)`` can be told from rounding.

    >>> float(rank_residual([[1.0, 0.0], [0.0, 1.0]])) ** 2
    0.5000000000000001
    """
    trace = jnp.trace(kernel, axis1=-2, axis2=-1)
    return _residual(_centre(kernel) if centred is None else centred, trace)


@of_arrays
def rank_residual_from_parts(centred: jax.Array, trace: jax.Array) -> jax.Array:
    """Return ``sqrt(tr(C S C) / tr S)`` from ``C S C``, shape ``(…, T, T)``, and ``tr S``, shape ``(…)``.

    Meaningful at any depth of collapse, since nothing is subtracted.
    """
    return _residual(centred, trace)


def rank_residual_floor(dtype: Any) -> float:
    """Return the rank residual that rounding alone makes when it is read off ``S``: ``sqrt(16 eps)``.

    >>> rank_residual_floor("float64") < 1e-7
    True
    """
    return float(np.sqrt(16 * np.finfo(dtype).eps))


def _centre(kernel: jax.Array) -> jax.Array:
    for _ in range(2):
        kernel = kernel - kernel.mean(-1, keepdims=True)
        kernel = kernel - kernel.mean(-2, keepdims=True)
    return kernel


def _residual(centred: jax.Array, trace: jax.Array) -> jax.Array:
    defined = trace > 0
    share = jnp.trace(centred, axis1=-2, axis2=-1) / jnp.where(defined, trace, 1)
    # A variance share below zero by rounding is none; by more, the matrix was no kernel.
    rounding = 16 * jnp.finfo(share.dtype).eps
    positive = share > 0
    root = jnp.where(positive, jnp.sqrt(jnp.where(positive, share, 1)), 0)
    return jnp.where(defined & (share >= -rounding), root, jnp.nan)
