"""Ranks of a spectrum ``(…, n)``: eigenvalues of ``S`` or singular values of ``X``, non-negative, falling.

The same formula on the eigenvalues and on the singular values gives two different ranks.
"""

import jax
import jax.numpy as jnp

from kernelprop.observables.checked import of_arrays


@of_arrays
def entropy_rank(values: jax.Array) -> jax.Array:
    """Return ``exp(-sum_k p_k log p_k)``, ``p = values / sum(values)``, ``0 log 0 = 0``, shape ``(…)``.

    NaN for a zero spectrum or one with a negative value.

    >>> float(entropy_rank([1.0, 0.0, 0.0]))
    1.0
    """
    share = values / _or_nan(values.sum(-1, keepdims=True))
    positive = share > 0
    terms = jnp.where(positive, share * jnp.log(jnp.where(positive, share, 1)), 0)
    return jnp.where((share >= 0).all(-1), jnp.exp(-terms.sum(-1)), jnp.nan)


@of_arrays
def participation(values: jax.Array) -> jax.Array:
    """Return ``(sum_k v_k)² / sum_k v_k²``, shape ``(…)``; NaN for a zero spectrum.

    >>> float(participation([9.0, 4.0, 1.0, 0.0]))
    2.0
    """
    share = values / _or_nan(values.sum(-1, keepdims=True))
    return 1 / (share**2).sum(-1)


@of_arrays
def sum_over_maximum(values: jax.Array) -> jax.Array:
    """Return ``sum_k v_k / max_k v_k``, shape ``(…)``; NaN for a zero spectrum.

    On the eigenvalues of a kernel it is the stable rank.

    >>> float(sum_over_maximum([3.0, 2.0, 1.0, 0.0]))
    2.0
    """
    return values.sum(-1) / _or_nan(values.max(-1))


@of_arrays
def count_above(values: jax.Array, threshold: float = 0.01) -> jax.Array:
    """Return how many values exceed ``threshold`` times the largest, shape ``(…)``; NaN for a zero spectrum.

    >>> float(count_above([3.0, 2.0, 1.0, 0.0]))
    3.0
    """
    largest = _or_nan(values.max(-1, keepdims=True))
    number = (values > threshold * largest).sum(-1).astype(values.dtype)
    return jnp.where(largest[..., 0] > 0, number, jnp.nan)


@of_arrays
def first_over_second(values: jax.Array) -> jax.Array:
    """Return ``v_0 / v_1``, shape ``(…)``; infinite where ``v_1 = 0``, NaN for a zero or one-value spectrum.

    A second value below ``10 n eps v_0`` is rounding of 0: it makes no gap of 1e16.

    >>> float(first_over_second([3.0, 0.0, 0.0]))
    inf
    """
    ratio = _second_over_first(values)
    return jnp.where(ratio == 0, jnp.inf, 1 / jnp.where(ratio == 0, 1, ratio))


@of_arrays
def second_over_first(values: jax.Array) -> jax.Array:
    """Return ``v_1 / v_0``, shape ``(…)``: 0 where the gap is infinite, NaN where it is NaN."""
    return _second_over_first(values)


def above_rounding(values: jax.Array) -> jax.Array:
    """Return a spectrum with 0 for what is below ``10 n eps`` of its largest value: rounding of a solver."""
    return jnp.where(jnp.abs(values) <= rounding(values), 0, values)


def rounding(values: jax.Array) -> jax.Array:
    """Return ``10 n eps max|v|``, shape ``(…, 1)``: what an eigenvalue solver can leave of a zero eigenvalue."""
    return 10 * values.shape[-1] * jnp.finfo(values.dtype).eps * jnp.abs(values).max(-1, keepdims=True)


def _second_over_first(values: jax.Array) -> jax.Array:
    if values.shape[-1] < 2:
        return jnp.full_like(values[..., 0], jnp.nan)
    values = above_rounding(values)
    return values[..., 1] / _or_nan(values[..., 0])


def _or_nan(total: jax.Array) -> jax.Array:
    """A zero denominator makes the answer NaN, never infinite."""
    return jnp.where(total > 0, total, jnp.nan)
