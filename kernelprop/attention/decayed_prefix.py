"""Decayed prefix sums: the recurrence under every structured causal attention matrix."""

import math

import jax.numpy as jnp
from jaxtyping import Array, Float

from kernelprop.precision import full_product

# Measured: larger blocks do more products than they save steps.
LARGEST_BLOCK = 16
# So few blocks hand their sums on by one triangular product; more of them are blocked again.
FEW_BLOCKS = 256


def decayed_prefix(x: Float[Array, "*batch T"], log_decay: Float[Array, ""]) -> Float[Array, "*batch T"]:
    """``s_i = Σ_{j<i} e^{(i−1−j) log_decay} x_j`` along the last axis; ``O(T)`` a row, of memory and of work.

    A small triangular product inside each block, and the same recurrence, with the decay to the power of the
    block, over what the blocks hand on. ``log_decay = −∞`` keeps only ``x_{i−1}``.
    """
    length = x.shape[-1]
    block = block_length(length)
    blocks = -(-length // block)
    padding = [(0, 0)] * (x.ndim - 1) + [(0, blocks * block - length)]
    pieces = jnp.pad(x, padding).reshape(*x.shape[:-1], blocks, block)
    power = powers(log_decay, block)
    handed_on = jnp.sum(pieces * power[::-1].reshape((1,) * x.ndim + (block,)), axis=-1)
    across = block * log_decay
    if blocks <= FEW_BLOCKS:
        carried = full_product(handed_on, strictly_triangular(powers(across, blocks)))
    else:
        carried = decayed_prefix(handed_on, across)
    inside = full_product(pieces, strictly_triangular(power))
    total = inside + carried[..., None] * power.reshape((1,) * x.ndim + (block,))
    return total.reshape(*x.shape[:-1], blocks * block)[..., :length]


def decayed_prefix_of_rows(x: Float[Array, "T d"], log_decay: Float[Array, ""]) -> Float[Array, "T d"]:
    """`decayed_prefix` down the rows: ``s_i = Σ_{j<i} e^{(i−1−j) log_decay} x_j``."""
    length = len(x)
    if length <= FEW_BLOCKS:
        return full_product(strictly_triangular(powers(log_decay, length)).T, x)
    return decayed_prefix(x.T, log_decay).T


def decayed_suffix_of_rows(x: Float[Array, "T d"], log_decay: Float[Array, ""]) -> Float[Array, "T d"]:
    """`decayed_suffix` down the rows: the adjoint of `decayed_prefix_of_rows`."""
    length = len(x)
    if length <= FEW_BLOCKS:
        return full_product(strictly_triangular(powers(log_decay, length)), x)
    return decayed_suffix(x.T, log_decay).T


def decayed_suffix(x: Float[Array, "*batch T"], log_decay: Float[Array, ""]) -> Float[Array, "*batch T"]:
    """``s_j = Σ_{i>j} e^{(i−1−j) log_decay} x_i``: the adjoint of `decayed_prefix`."""
    return jnp.flip(decayed_prefix(jnp.flip(x, -1), log_decay), -1)


def block_length(length: int) -> int:
    """The power of two nearest below √T, at most `LARGEST_BLOCK`: usual lengths then need no padding."""
    return min(1 << (math.isqrt(length).bit_length() - 1), LARGEST_BLOCK)


def powers(log_decay: Float[Array, ""], count: int) -> Float[Array, "count"]:
    """``decay^n`` for n = 0 … count − 1; decay⁰ = 1 also for a decay of zero."""
    exponents = jnp.arange(count, dtype=log_decay.dtype)
    return jnp.where(exponents == 0, 1.0, jnp.exp(exponents * jnp.where(exponents == 0, 0.0, log_decay)))


def strictly_triangular(power: Float[Array, "count"]) -> Float[Array, "count count"]:
    """``M[j, i] = decay^{i−1−j}`` for ``j < i``, zero elsewhere."""
    count = power.shape[0]
    lag = jnp.arange(count)[None, :] - jnp.arange(count)[:, None] - 1
    return jnp.where(lag >= 0, power[jnp.maximum(lag, 0)], 0.0)
