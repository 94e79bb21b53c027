"""``E[f(u) g(v)]`` by quadrature over the plane, for entries on which Mehler's expansion converges too slowly.

``u = sqrt(q1) x``, ``v = sqrt(q2) (c x + s y)`` with ``s = sqrt(1 - c^2)`` and ``x, y`` independent normal. The
inner integral over ``y`` is ``g`` blurred by ``sqrt(q2) s``; intervals end where ``f``, ``g`` and, for the outer
one, the blurred ``g`` change. Accurate for every ``c``; at ``c = +-1`` it is an integral over a line.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from kernelprop.activations.integrand import Integrand
from kernelprop.activations.quadrature import COARSE, composite, scaled
from kernelprop.activations.safe import root

ORDER = 12
# A blurred kink has its whole width in nine standard deviations of the blur, on either side.
BLUR = (-9.0, -5.0, -3.0, -1.5, 1.5, 3.0, 5.0, 9.0)
EVALUATIONS = 1 << 21


def plane_block(f: Integrand, g: Integrand) -> int:
    """How many entries at a time keep the evaluations within bounded memory."""
    outer = len(f.ends) + len(g.ends) + len(g.kinks) * len(BLUR) + len(COARSE)
    inner = len(g.ends) + len(COARSE)
    return max(1, min(64, EVALUATIONS // (outer * inner * ORDER**2)))


def plane_values(f: Integrand, g: Integrand, q1: Float[Array, " B"], q2: Float[Array, " B"], c: Array) -> Array:
    """``E[f(u) g(v)]`` for each of ``B`` entries."""
    return jax.vmap(lambda *entry: _plane_value(f, g, *entry))(q1, q2, c)


def _plane_value(f: Integrand, g: Integrand, q1: Array, q2: Array, c: Array) -> Array:
    deviation1, deviation2 = root(q1), root(q2)
    s = jnp.sqrt((1 - c) * (1 + c))
    edge = float(max(COARSE))
    coarse = jnp.asarray(COARSE, c.dtype)
    # Features of the blurred g lie where c x is a feature of g; for small c they are too wide to matter.
    slope = jnp.where(c < 0, -1, 1).astype(c.dtype) * jnp.maximum(jnp.abs(c), 1e-3)
    outer_ends = jnp.concatenate(
        [
            scaled(f.ends, deviation1[None], edge),
            jnp.clip(scaled(g.ends, deviation2[None], 1e6) / slope, -edge, edge),
            _blurred_kinks(g, deviation2, slope, s, edge),
            coarse,
        ]
    )
    x, weights = composite(outer_ends, ORDER)
    own = scaled(g.ends, deviation2[None], 1e6)
    least = jnp.asarray(1e-30, c.dtype)
    centred = (own[None, :] - (c * x)[:, None]) / jnp.maximum(s, least)
    inner_ends = jnp.concatenate(
        [jnp.clip(centred, -edge, edge), jnp.broadcast_to(coarse[None, :], (len(x), len(COARSE)))], axis=1
    )
    y, inner_weights = composite(inner_ends, ORDER)
    blurred = jnp.sum(inner_weights * g.function(deviation2 * ((c * x)[:, None] + s * y)), axis=1)
    return jnp.sum(weights * f.function(deviation1 * x) * blurred)


def _blurred_kinks(g: Integrand, deviation: Array, slope: Array, s: Array, edge: float) -> Array:
    if not g.kinks:
        return jnp.zeros((0,), s.dtype)
    places = scaled(g.kinks, deviation[None], 1e6) / slope
    offsets = jnp.asarray(BLUR, s.dtype) * s / jnp.abs(slope)
    return jnp.clip((places[:, None] + offsets[None, :]).ravel(), -edge, edge)
