"""Ranks of a kernel: how many directions its positions use, in the several senses of the word."""

from typing import Any

import jax
import jax.numpy as jnp

from kernelprop.observables import spectrum
from kernelprop.observables.checked import of_kernels
from kernelprop.observables.residual import centre


@of_kernels
def participation_ratio(kernel: jax.Array) -> jax.Array:
    """Return ``(tr S)² / |S|_F²``, shape ``(…)``, which needs no eigenvalues; NaN for the zero kernel.

    >>> float(participation_ratio([[1.0, 0.0], [0.0, 1.0]]))
    2.0
    """
    trace = jnp.trace(kernel, axis1=-2, axis2=-1)
    scaled = kernel / jnp.where(trace > 0, trace, jnp.nan)[..., None, None]
    return 1 / (scaled**2).sum((-2, -1))


@of_kernels
def eigenvalues(kernel: jax.Array) -> jax.Array:
    """Return the eigenvalues of ``S``, shape ``(…, T)``, falling.

    Those in ``[-10 T eps λ_max, 0)`` are rounding and become 0; lower ones stay (the matrix was no kernel).
    """
    values = jnp.asarray(jnp.linalg.eigvalsh(kernel))[..., ::-1]
    return jnp.where((values < 0) & (values >= -spectrum.rounding(values)), 0, values)


@of_kernels
def effective_rank(kernel: jax.Array) -> jax.Array:
    """Return ``exp(entropy of λ / sum λ)``, ``λ`` the eigenvalues of ``S``, shape ``(…)``; NaN for ``S = 0``.

    >>> round(float(effective_rank([[9.0, 0.0, 0.0], [0.0, 4.0, 0.0], [0.0, 0.0, 1.0]])), 9)
    2.294400782
    """
    return spectrum.entropy_rank(eigenvalues(kernel))


@of_kernels
def stable_rank(kernel: jax.Array) -> jax.Array:
    """Return ``tr S / λ_max``, shape ``(…)``; NaN for the zero kernel.

    >>> round(float(stable_rank([[9.0, 0.0, 0.0], [0.0, 4.0, 0.0], [0.0, 0.0, 1.0]])), 9)
    1.555555556
    """
    return spectrum.sum_over_maximum(eigenvalues(kernel))


@of_kernels
def eigenvalue_gap(kernel: jax.Array) -> jax.Array:
    """Return ``λ_0 / λ_1``, shape ``(…)``; infinite where ``λ_1`` is below ``10 T eps λ_0``."""
    return spectrum.first_over_second(eigenvalues(kernel))


@of_kernels
def eigenvalue_ratio(kernel: jax.Array) -> jax.Array:
    """Return ``λ_1 / λ_0``, shape ``(…)``: 0 where the gap is infinite."""
    return spectrum.second_over_first(eigenvalues(kernel))


@of_kernels
def singular_values(kernel: jax.Array) -> jax.Array:
    """Return the singular values of ``X / sqrt(d)`` for ``S = X X'/d``, shape ``(…, T)``, falling.

    They are the roots of the eigenvalues, of which those below ``10 T eps λ_max`` count as 0: a root would
    turn rounding of 1e-16 into a singular value of 1e-8.
    """
    values = spectrum.above_rounding(eigenvalues(kernel))
    positive = values > 0
    return jnp.where(positive, jnp.sqrt(jnp.where(positive, values, 1)), jnp.where(values < 0, jnp.nan, 0))


@of_kernels
def singular_effective_rank(kernel: jax.Array) -> jax.Array:
    """Return ``exp(entropy of σ / sum σ)`` on the singular values of ``X``, shape ``(…)``."""
    return spectrum.entropy_rank(singular_values(kernel))


@of_kernels
def singular_participation_ratio(kernel: jax.Array) -> jax.Array:
    """Return ``(sum σ)² / sum σ²`` on the singular values of ``X``, shape ``(…)``."""
    return spectrum.participation(singular_values(kernel))


@of_kernels
def singular_sum_over_maximum(kernel: jax.Array) -> jax.Array:
    """Return ``sum σ / σ_max`` on the singular values of ``X``, shape ``(…)``."""
    return spectrum.sum_over_maximum(singular_values(kernel))


@of_kernels
def threshold_rank(kernel: jax.Array, threshold: float = 0.01) -> jax.Array:
    """Return how many singular values of ``X`` exceed ``threshold`` times the largest, shape ``(…)``."""
    return spectrum.count_above(singular_values(kernel), threshold)


@of_kernels
def centred_participation_ratio(kernel: jax.Array, centred: jax.Array | None = None) -> jax.Array:
    """Return the participation ratio of ``C S C``, shape ``(…)``; NaN where rounding of ``S`` hides it.

    Args:
        kernel: ``S``, shape ``(…, T, T)``.
        centred: ``C S C`` where the caller carries it; then only an exact 0 is undefined.
    """
    return participation_ratio(_told_apart(kernel, centred))


@of_kernels
def centred_effective_rank(kernel: jax.Array, centred: jax.Array | None = None) -> jax.Array:
    """Return the effective rank of ``C S C``, shape ``(…)``; arguments and NaN as for the ratio above."""
    return effective_rank(_told_apart(kernel, centred))


@of_kernels
def centred_stable_rank(kernel: jax.Array, centred: jax.Array | None = None) -> jax.Array:
    """Return the stable rank of ``C S C``, shape ``(…)``; arguments and NaN as for the ratio above."""
    return stable_rank(_told_apart(kernel, centred))


def _told_apart(kernel: jax.Array, centred: Any) -> Any:
    """Return ``C S C``, or zeros (which have no rank) where it is no larger than the rounding of ``S``."""
    if centred is not None:
        return centred
    apart = centre(kernel)
    share = jnp.trace(apart, axis1=-2, axis2=-1), jnp.trace(kernel, axis1=-2, axis2=-1)
    known = share[0] > 16 * jnp.finfo(kernel.dtype).eps * share[1]
    return jnp.where(known[..., None, None], apart, 0)
