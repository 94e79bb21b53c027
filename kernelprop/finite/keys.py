"""Random keys: one for every draw, layer and weight, all told apart by named tags.

A key belongs to what is drawn, never to the device or the batch that draws it, so that a result doesn't depend on
how the work was spread. ``fold_in(fold_in(fold_in(draw, LAYERS), layer), WEIGHT_TAGS[name])`` is the key of one
weight.
"""

from types import MappingProxyType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

# Threefry: the same on every backend and under vmap, which the hardware's generators are not, and faster than they
# for normal numbers on the CPU as `threefry` writes it out.
GENERATOR = "threefry2x32"
LARGEST_SEED = 2**32 - 1

# What a draw needs randomness for.
INPUT, POSITIONS, COTANGENT, LAYERS = 1, 2, 3, 4

WEIGHT_TAGS = MappingProxyType(
    {
        "query": 1,
        "key": 2,
        "value": 3,
        "output": 4,
        "mlp_in": 5,
        "mlp_gate": 6,
        "mlp_out": 7,
        "mlp_bias_in": 8,
        "mlp_bias_out": 9,
    }
)


def root_key(key: Any) -> Array:
    """Return the JAX key that a seed, or a JAX key of either kind, stands for.

    Raises:
        ValueError: for a seed outside ``0…2³²−1`` (JAX would let such seeds coincide with others), and for what is
            neither a seed nor one key.

    >>> root_key(2**32)
    Traceback (most recent call last):
    ValueError: key: seed 4294967296 is outside 0…4294967295
    """
    if isinstance(key, jax.Array):
        return _one_key(key)
    if isinstance(key, bool) or not isinstance(key, int | np.integer):
        raise ValueError(f"key: a seed (a whole number) or a JAX key is wanted, {key!r} was given")
    if not 0 <= key <= LARGEST_SEED:
        raise ValueError(f"key: seed {key} is outside 0…{LARGEST_SEED}")
    return jax.random.key(np.uint32(key), impl=GENERATOR)


def _one_key(key: Array) -> Array:
    if jnp.issubdtype(key.dtype, jax.dtypes.prng_key):
        if key.ndim:
            raise ValueError(f"key: one JAX key is wanted, an array {key.shape} of keys was given")
        return key if str(jax.random.key_impl(key)) == GENERATOR else _as_threefry(key)
    if key.dtype != jnp.uint32 or key.shape != (2,):
        raise ValueError(f"key: a JAX key is wanted, an array {key.shape} of {key.dtype} was given")
    return jax.random.wrap_key_data(key, impl=GENERATOR)


def _as_threefry(key: Array) -> Array:
    """A threefry key that a key of another generator stands for."""
    return jax.random.wrap_key_data(jax.random.bits(key, (2,), jnp.uint32), impl=GENERATOR)


def draw_key(root: Array, draw: Any) -> Array:
    """The key of one draw of the whole network."""
    return jax.random.fold_in(root, draw)


def purpose_key(draw: Array, purpose: int) -> Array:
    """The key of a draw's input, positions or cotangent."""
    return jax.random.fold_in(draw, purpose)


def layer_keys(draw: Array, depth: int) -> Array:
    """The keys of all layers' weights, ``(L, tags)``; layers count from 1.

    Made at one go: a folding of its own for every weight, inside the scan over layers, would take longer to compile
    than the network.
    """
    layers = jax.random.fold_in(draw, LAYERS)
    tags = jnp.arange(len(WEIGHT_TAGS) + 1, dtype=jnp.uint32)

    def of_layer(layer: Array) -> Array:
        one = jax.random.fold_in(layers, layer)
        return jax.vmap(lambda tag: jax.random.fold_in(one, tag))(tags)

    return jax.vmap(of_layer)(jnp.arange(1, depth + 1, dtype=jnp.uint32))


def weight_key(layer: Array, name: str) -> Array:
    """The key of one weight, of its layer's keys ``(tags,)``."""
    return layer[WEIGHT_TAGS[name]]


def describe(root: Array) -> np.ndarray:
    """The numbers of a key, for a checkpoint to know it again."""
    return np.asarray(jax.random.key_data(root))
