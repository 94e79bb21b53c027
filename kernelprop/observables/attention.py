"""Numbers read off an attention matrix, and norms of a residual: matrices that need not be kernels."""

import jax
import jax.numpy as jnp

from kernelprop.observables.checked import of_arrays
from kernelprop.powers_of_two import exponent, power


@of_arrays
def attention_entropy(attention: jax.Array) -> jax.Array:
    """Return ``-sum_j P_ij log P_ij`` in nats for every row, shape ``(…, T)``.

    ``P`` is ``A`` with its rows divided by their sums, since ``A = D P``. Masked keys are zeros of ``A`` and
    don't count (``0 log 0 = 0``). NaN for a row of zeros, and for one with a negative entry: no softmax makes
    it.

    >>> attention_entropy([[1.0, 0.0], [0.5, 0.5]]).round(6)
    array([0.      , 0.693147])
    """
    return _entropy(attention)


@of_arrays
def mean_attention_entropy(attention: jax.Array) -> jax.Array:
    """Return the mean over rows of ``attention_entropy``, shape ``(…)``."""
    return _entropy(attention).mean(-1)


@of_arrays
def composite_norm(residual: jax.Array) -> jax.Array:
    """Return ``sqrt(|R|_1 |R|_inf)``, shape ``(…)``: largest column sum and largest row sum of ``|R_ij|``.

    The norm in which Dong et al. (2021) state the collapse, for ``R = X - 1 x'`` of shape ``(…, m, n)``.
    It is 0 with gradient 0 at ``R = 0``.

    >>> round(float(composite_norm([[1.0, -2.0], [3.0, 4.0]])), 9)
    6.480740698
    """
    scaled, exponents = _scaled(residual, (-2, -1))
    sizes = jnp.abs(scaled)
    square = sizes.sum(-2).max(-1) * sizes.sum(-1).max(-1)
    positive = square > 0
    norm = jnp.where(positive, jnp.sqrt(jnp.where(positive, square, 1)), 0)
    return norm * power(exponents[..., 0, 0], norm.dtype)


def _entropy(attention: jax.Array) -> jax.Array:
    scaled, _ = _scaled(attention, (-1,))
    total = scaled.sum(-1, keepdims=True)
    share = scaled / jnp.where(total > 0, total, 1)
    positive = share > 0
    # The sign inside the sum: a row with one key has entropy 0, not -0.
    entropy = jnp.where(positive, -share * jnp.log(jnp.where(positive, share, 1)), 0).sum(-1)
    defined = (total[..., 0] > 0) & (attention >= 0).all(-1)
    return jnp.where(defined, entropy, jnp.nan)


def _scaled(values: jax.Array, axes: tuple[int, ...]) -> tuple[jax.Array, jax.Array]:
    """Values whose largest size along these axes is below 1 and at least 1/2, and the exponents of two taken off.

    No sum of them leaves the numbers, and no square of the largest.
    """
    sizes = jnp.abs(values).max(axes, keepdims=True) * 1.0
    exponents = exponent(sizes)
    return values * power(-exponents, sizes.dtype), exponents
