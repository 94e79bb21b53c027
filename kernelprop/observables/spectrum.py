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

    >>> float(first_over_second([3.0, 0.0, 0.0]))
    inf
    """
    if values.shape[-1] < 2:
        return jnp.full_like(values[..., 0], jnp.nan)
    first, second = _or_nan(values[..., 0]), values[..., 1]
    gap = first / jnp.where(second > 0, second, 1)
    return jnp.where(second > 0, gap, jnp.where(first > 0, jnp.inf, jnp.nan))


@of_arrays
def second_over_first(values: jax.Array) -> jax.Array:
    """Return ``v_1 / v_0``, shape ``(…)``; NaN for a zero or one-value spectrum."""
    if values.shape[-1] < 2:
        return jnp.full_like(values[..., 0], jnp.nan)
    return values[..., 1] / _or_nan(values[..., 0])


def _or_nan(total: jax.Array) -> jax.Array:
    """A zero denominator makes the answer NaN, never infinite."""
    return jnp.where(total > 0, total, jnp.nan)
