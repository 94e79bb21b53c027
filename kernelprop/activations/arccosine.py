"""Angles: an arc-cosine several times faster than XLA's, and the functions of it that dual kernels are made of."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from kernelprop.activations.safe import inverse_root, one_minus_square

# asin(sqrt(z))/sqrt(z) on 0 <= z <= 1/2 as a polynomial in t = 4z - 1: its truncated Chebyshev series. The
# tests make these numbers anew with mpmath. Degree 20 is at 2e-16, degree 8 at 2e-7.
DOUBLE = (
    *(1.0471975511965979, 0.05375149359132688, 0.00779890223897363, 0.0015196685396007042),
    *(0.0003408637234223566, 8.302317787417891e-05, 2.1345552502340797e-05, 5.701783620636151e-06),
    *(1.5669634225237788e-06, 4.401965310289306e-07, 1.2584262670454288e-07, 3.6494176861214845e-08),
    *(1.0708846364707377e-08, 3.169056012094685e-09, 9.467966058474889e-10, 2.9127320481504746e-10),
    *(8.868082184163187e-11, 2.213168513203876e-11, 6.5895686818293564e-12, 4.204585785234514e-12),
    *(1.337117972074904e-12,),
)
SINGLE = (
    *(1.047197551510298, 0.05375147447504375, 0.007798886705090456, 0.0015199201149752072),
    *(0.0003409862134012599, 8.213689888264101e-05, 2.1010685706867003e-05, 6.833550937652505e-06),
    *(1.9318271406109196e-06,),
)


def _arcsine_ratio(z: Float[Array, "..."]) -> Float[Array, "..."]:
    """``asin(sqrt(z))/sqrt(z)`` for ``0 <= z <= 1/2``."""
    t = 4 * z - 1
    coefficients = DOUBLE if z.dtype == jnp.float64 else SINGLE
    total = jnp.full_like(t, coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        total = total * t + coefficient
    return total


@jax.custom_jvp
def arccosine(c: Float[Array, "..."]) -> Float[Array, "..."]:
    """``arccos(c)`` for ``-1 <= c <= 1``; at the ends its infinite slope is given as 0."""
    z = (1 - jnp.abs(c)) / 2
    folded = 2 * jnp.sqrt(z) * _arcsine_ratio(z)
    return jnp.where(c < 0, jnp.pi - folded, folded)


@arccosine.defjvp
def _arccosine_jvp(primals, tangents):
    (c,), (dc,) = primals, tangents
    return arccosine(c), -inverse_root(one_minus_square(c)) * dc


@jax.custom_jvp
def segment(c: Float[Array, "..."]) -> Float[Array, "..."]:
    """``sqrt(1 - c^2) - c arccos(c)``, whose slope is exactly ``-arccos(c)``, at the ends too."""
    z = (1 - jnp.abs(c)) / 2
    folded = 2 * jnp.sqrt(z) * _arcsine_ratio(z)
    arc = jnp.where(c < 0, jnp.pi - folded, folded)
    return 2 * jnp.sqrt(z * (1 - z)) - c * arc


@segment.defjvp
def _segment_jvp(primals, tangents):
    (c,), (dc,) = primals, tangents
    return segment(c), -arccosine(c) * dc


@jax.custom_jvp
def angle(y: Float[Array, "..."], x: Float[Array, "..."]) -> Float[Array, "..."]:
    """``arctan(y/x)`` for ``x >= 0``, the angle of the point ``(x, y)``, without cancellation near +-pi/2."""
    length = jnp.sqrt(x * x + y * y)
    length = jnp.where(length > 0, length, jnp.ones_like(length))
    sine = jnp.abs(y) / length
    near_axis = sine < 0.5
    # 1 - sine from x, so that nothing cancels as sine approaches 1.
    z = jnp.where(near_axis, sine * sine, (x / length) ** 2 / (2 * (1 + sine)))
    part = jnp.where(near_axis, sine, jnp.sqrt(z)) * _arcsine_ratio(z)
    return jnp.where(y < 0, -1, 1).astype(y.dtype) * jnp.where(near_axis, part, jnp.pi / 2 - 2 * part)


@angle.defjvp
def _angle_jvp(primals, tangents):
    (y, x), (dy, dx) = primals, tangents
    square = x * x + y * y
    safe_square = jnp.where(square > 0, square, jnp.ones_like(square))
    return angle(y, x), (x * dy - y * dx) / safe_square
