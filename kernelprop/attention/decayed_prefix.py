"""Decayed prefix sums: the recurrence under every structured causal attention matrix."""

import math

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

# Blocks beyond this size do more products than the cache saves.
LARGEST_BLOCK = 64


def decayed_prefix(x: Float[Array, "*batch T"], log_decay: Float[Array, ""]) -> Float[Array, "*batch T"]:
    """``s_i = Σ_{j<i} e^{(i−1−j) log_decay} x_j`` along the last axis, in ``O(T)`` memory and work an entry row.

    Blocks of about √T positions: a small triangular product inside each, and the same recurrence, with a
    decay to the power of the block, over what they hand on. ``log_decay = −∞`` keeps only ``x_{i−1}``.
    """
    length = x.shape[-1]
    if length == 1:
        return jnp.zeros_like(x)
    if length == 2:
        return jnp.concatenate([jnp.zeros_like(x[..., :1]), x[..., :1]], axis=-1)
    block = block_length(length)
    blocks = -(-length // block)
    padding = [(0, 0)] * (x.ndim - 1) + [(0, blocks * block - length)]
    pieces = jnp.pad(x, padding).reshape(*x.shape[:-1], blocks, block)
    power = powers(log_decay, block)
    inside = _product(pieces, strictly_triangular(power))
    handed_on = jnp.squeeze(_product(pieces, power[::-1][:, None]), -1)
    carried = decayed_prefix(handed_on, block * log_decay)
    total = inside + carried[..., None] * power.reshape((1,) * (inside.ndim - 1) + (block,))
    return total.reshape(*x.shape[:-1], blocks * block)[..., :length]


def decayed_suffix(x: Float[Array, "*batch T"], log_decay: Float[Array, ""]) -> Float[Array, "*batch T"]:
    """``s_j = Σ_{i>j} e^{(i−1−j) log_decay} x_i``: the adjoint of `decayed_prefix`."""
    return jnp.flip(decayed_prefix(jnp.flip(x, -1), log_decay), -1)


def block_length(length: int) -> int:
    """About √T, so that a block is small against the whole and there are few; at most `LARGEST_BLOCK`."""
    return min(math.isqrt(length - 1) + 1, LARGEST_BLOCK)


def powers(log_decay: Float[Array, ""], count: int) -> Float[Array, "count"]:
    """``decay^n`` for n = 0 … count − 1; decay⁰ = 1 also for a decay of zero."""
    exponents = jnp.arange(count, dtype=log_decay.dtype)
    return jnp.where(exponents == 0, 1.0, jnp.exp(exponents * jnp.where(exponents == 0, 0.0, log_decay)))


def strictly_triangular(power: Float[Array, "count"]) -> Float[Array, "count count"]:
    """``M[j, i] = decay^{i−1−j}`` for ``j < i``, zero elsewhere."""
    count = power.shape[0]
    lag = jnp.arange(count)[None, :] - jnp.arange(count)[:, None] - 1
    return jnp.where(lag >= 0, power[jnp.maximum(lag, 0)], 0.0)


def _product(x: Array, matrix: Array) -> Array:
    return jnp.matmul(x, matrix, precision=lax.Precision.HIGHEST)
