"""Scaling by powers of two, exact: what squares and cubes of huge or tiny numbers need to stay representable."""

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, Int

# Steps that a power is multiplied in: each one's factor is then a normal number.
STEPS = 4


def exponent(largest: Float[Array, "*shape"]) -> Int[Array, "*shape"]:
    """The ``e`` with ``2^{e−1} ≤ x < 2^e`` for sizes ``x``, from their bits; 0 where they are 0, infinite or NaN.

    It stops short of the ends of the type's range, so that ``2^e`` and ``2^{−e}`` are both normal numbers. No slope
    goes through it.
    """
    limits = jnp.finfo(largest.dtype)
    stored = lax.bitcast_convert_type(lax.stop_gradient(largest), _whole(limits.bits)) >> limits.nmant
    found = jnp.clip(stored - (limits.maxexp - 2), limits.minexp + 2, limits.maxexp - 2)
    return jnp.where((stored > 0) & (stored < 2 * limits.maxexp - 1), found, 0)


def power(exponents: Int[Array, "*shape"], dtype: np.dtype) -> Float[Array, "*shape"]:
    """``2^e`` for ``e`` within the normal numbers, from its bits: a function of powers may round."""
    limits = jnp.finfo(dtype)
    return lax.bitcast_convert_type(
        (exponents.astype(_whole(limits.bits)) + (limits.maxexp - 1)) << limits.nmant, dtype
    )


def times_power(values: Float[Array, "*shape"], exponents: Int[Array, "*shape"]) -> Float[Array, "*shape"]:
    """``2^e x``: right whenever it is a number of the type, infinite or 0 where it lies outside."""
    # A power beyond this takes the smallest number past the largest, and the largest below the smallest.
    most = 2 * jnp.finfo(values.dtype).maxexp + 64
    exponents = jnp.clip(exponents, -most, most)
    for step in range(STEPS):
        # These shares ⌊(e + k)/4⌋ of e sum up to it, and have one sign.
        values = values * power((exponents + step) >> 2, values.dtype)
    return values


def _whole(bits: int) -> np.dtype:
    """The integers of as many bits."""
    return np.dtype(f"int{bits}")
