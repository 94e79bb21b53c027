"""Logits of queries and keys, and what is left of them while the queries are zero."""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from kernelprop.finite.products import squared_norm_of_product


class Scoring(NamedTuple):
    """How queries meet keys: the factor of the logits, ``τ/√d_k`` or ``τ/d_k``, and rotary frequencies ``(m,)``."""

    scale: Float[Array, ""]
    frequencies: Float[Array, "m"] | None


def scaled_logits(
    queries: Float[Array, "T n"], keys: Float[Array, "T n"], scoring: Scoring, heads: int
) -> Float[Array, "H T T"]:
    """``scale · q kᵀ`` of every head, both turned by their positions where positions are rotary."""
    sides = [split_heads(side, heads) for side in (queries, keys)]
    if scoring.frequencies is not None:
        sides = [rotate(side, scoring.frequencies) for side in sides]
    return (sides[0] @ jnp.swapaxes(sides[1], -1, -2)) * scoring.scale


@partial(jax.custom_vjp, nondiff_argnums=(4,))
def logits_of_zero_queries(
    x: Float[Array, "T d"], key_weight: Float[Array, "d n"], scoring: Scoring, probe: Float[Array, ""], heads: int
) -> Float[Array, "H T T"]:
    """Zeros; the cotangent of the probe is the squared norm of the gradient of ``W_Q``, at ``W_Q = 0``.

    There it is all that the logits give back: through zero queries nothing reaches the input, the keys or the scale.
    So neither queries nor logits need be computed, and keys only on the way back.
    """
    return jnp.zeros((heads, len(x), len(x)), x.dtype)


def _forward(
    x: Array, key_weight: Array, scoring: Scoring, probe: Array, heads: int
) -> tuple[Array, tuple[Array, Array, Scoring]]:
    return logits_of_zero_queries(x, key_weight, scoring, probe, heads), (x, key_weight, scoring)


def _backward(heads: int, saved: tuple[Array, Array, Scoring], cotangent: Array) -> tuple:
    x, key_weight, scoring = saved
    keys = x @ key_weight
    _, pull = jax.vjp(lambda queries: scaled_logits(queries, keys, scoring, heads), jnp.zeros_like(keys))
    (queries,) = pull(cotangent)
    return None, None, None, squared_norm_of_product(x, queries)


logits_of_zero_queries.defvjp(_forward, _backward)


def rotate(x: Float[Array, "H T d_k"], frequencies: Float[Array, "m"]) -> Float[Array, "H T d_k"]:
    """Rotary positions: feature pairs ``(2p, 2p+1)`` of position ``i`` turned by ``i θ_{p mod m}``.

    ``d_k`` must be a multiple of ``2m``; each frequency then turns equally many pairs (Su et al. 2021,
    arXiv 2104.09864).
    """
    pairs = x.reshape(*x.shape[:-1], -1, 2)
    turns = jnp.tile(frequencies, pairs.shape[-2] // len(frequencies))
    angles = jnp.arange(x.shape[-2], dtype=x.dtype)[:, None] * turns[None, :]
    cosine, sine = jnp.cos(angles)[None], jnp.sin(angles)[None]
    even, odd = pairs[..., 0], pairs[..., 1]
    return jnp.stack([even * cosine - odd * sine, even * sine + odd * cosine], axis=-1).reshape(x.shape)


def split_heads(x: Float[Array, "T n"], heads: int) -> Float[Array, "H T d_k"]:
    """The columns of each head, head by head."""
    return jnp.moveaxis(x.reshape(len(x), heads, -1), 1, 0)
