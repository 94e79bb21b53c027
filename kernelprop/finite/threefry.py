"""Random numbers from JAX's own threefry stream, evaluated in one pass.

JAX compiles the twenty rounds to a loop on the CPU, which passes over memory in each round. Written out they fuse
with what is done with the bits: the same numbers as ``jax.random.normal`` of a threefry key, bit for bit in float32,
four times as fast where it was measured (`analysis/benchmarks/accelerator.py`). Source of the generator: Salmon et
al., "Parallel random numbers: as easy as 1, 2, 3", 2011.
"""

from functools import partial
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, UInt32

ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
PARITY = np.uint32(0x1BD11BDA)
# Counters are 32 bits wide here; JAX goes on with a second word.
LARGEST = 2**32


@partial(jax.jit, static_argnames=("shape", "dtype"))
def normal(key: Array, shape: tuple[int, ...], dtype: jnp.dtype) -> Float[Array, "..."]:
    """Independent N(0, 1), what ``jax.random.normal(key, shape, dtype)`` gives for a threefry key."""
    lowest = np.nextafter(np.asarray(-1, dtype), np.asarray(0, dtype), dtype=dtype)
    return lax.erf_inv(uniform(key, shape, dtype, lowest, np.asarray(1, dtype))) * np.asarray(2**0.5, dtype)


@partial(jax.jit, static_argnames=("bound", "shape", "dtype"))
def truncated_normal(key: Array, bound: float, shape: tuple[int, ...], dtype: jnp.dtype) -> Float[Array, "..."]:
    """Independent N(0, 1) given that it lies within ``±bound``."""
    edge = lax.erf(jnp.asarray(bound / 2**0.5, dtype))
    return lax.erf_inv(uniform(key, shape, dtype, -edge, edge)) * np.asarray(2**0.5, dtype)


def uniform(key: Array, shape: tuple[int, ...], dtype: jnp.dtype, low: Any, high: Any) -> Float[Array, "..."]:
    """Uniform numbers in ``[low, high)``: random mantissas in [1, 2), less 1, scaled."""
    if prod(shape) > LARGEST:
        raise ValueError(f"shape {shape}: more than {LARGEST} numbers from one key")
    first, second = _block(key, shape)
    if dtype == jnp.float32:
        word, mantissa, one = first ^ second, 23, np.uint32(0x3F800000)
    else:
        word = (first.astype(jnp.uint64) << np.uint64(32)) | second.astype(jnp.uint64)
        mantissa, one = 52, np.uint64(0x3FF0000000000000)
    spare = one.dtype.type(one.itemsize * 8 - mantissa)
    unit = lax.bitcast_convert_type((word >> spare) | one, dtype) - np.asarray(1, dtype)
    return jnp.maximum(jnp.asarray(low, dtype), unit * jnp.asarray(high - low, dtype) + jnp.asarray(low, dtype))


def _block(key: Array, shape: tuple[int, ...]) -> tuple[UInt32[Array, "..."], UInt32[Array, "..."]]:
    """Both words of every entry's block: the entry's place in the array is its counter."""
    counter = jnp.zeros(shape, jnp.uint32)
    for axis in range(len(shape)):
        stride = np.uint32(prod(shape[axis + 1 :]))
        counter = counter + lax.broadcasted_iota(jnp.uint32, shape, axis) * stride
    data = jax.random.key_data(key)
    return threefry(data[0], data[1], jnp.zeros_like(counter), counter)


def threefry(
    key0: UInt32[Array, ""], key1: UInt32[Array, ""], x0: UInt32[Array, "..."], x1: UInt32[Array, "..."]
) -> tuple[UInt32[Array, "..."], UInt32[Array, "..."]]:
    """Threefry-2x32 of 20 rounds, written out."""
    schedule = (key0, key1, key0 ^ key1 ^ PARITY)
    x0, x1 = x0 + schedule[0], x1 + schedule[1]
    for turn in range(5):
        for rotation in ROTATIONS[turn % 2]:
            x0 = x0 + x1
            x1 = ((x1 << np.uint32(rotation)) | (x1 >> np.uint32(32 - rotation))) ^ x0
        x0 = x0 + schedule[(turn + 1) % 3]
        x1 = x1 + schedule[(turn + 2) % 3] + np.uint32(turn + 1)
    return x0, x1
