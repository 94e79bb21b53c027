"""Values of a user's function at given points, outside whatever is being traced."""

from collections.abc import Callable
from functools import lru_cache

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

BLOCK = 1 << 14


def sample(function: Callable, points: np.ndarray) -> np.ndarray:
    """``function(points)`` in float64 as a numpy array; the points go through in blocks of one shape.

    Raises:
        ValueError: where JAX can't trace the function, its values depend on something that is being traced,
            or they are not one real number a point.
    """
    return _sample(function, points, ())


def sample_jet(function: Callable, points: np.ndarray) -> np.ndarray:
    """The function and its first two derivatives at the points, stacked along a first axis."""
    return _sample(_jet(function), points, (3,))


@lru_cache(maxsize=64)
def _jet(function: Callable) -> Callable:
    def slope(x: Array) -> Array:
        return jax.jvp(function, (x,), (jnp.ones_like(x),))[1]

    def jet(x: Array) -> Array:
        return jnp.stack([function(x), *jax.jvp(slope, (x,), (jnp.ones_like(x),))])

    return jet


@lru_cache(maxsize=64)
def _compiled(function: Callable) -> Callable:
    return jax.jit(function)


def _sample(function: Callable, points: np.ndarray, leading: tuple[int, ...]) -> np.ndarray:
    flat = np.asarray(points, np.float64).ravel()
    padded = np.resize(flat, (-(-len(flat) // BLOCK), BLOCK)) if len(flat) else np.zeros((0, BLOCK))
    with jax.enable_x64(True), jax.ensure_compile_time_eval():
        values = [_values(_compiled(function), block, leading) for block in padded]
    joined = np.concatenate([*values, np.zeros((*leading, 0))], axis=-1)
    return joined[..., : len(flat)].reshape(*leading, *np.shape(points))


def _values(compiled: Callable, block: np.ndarray, leading: tuple[int, ...]) -> np.ndarray:
    try:
        result = compiled(jnp.asarray(block))
        values = np.asarray(result, np.float64)
    except (jax.errors.JAXTypeError, jax.errors.JAXIndexError, TypeError, NotImplementedError) as error:
        raise ValueError(
            "activation: JAX can't evaluate or differentiate this function; write it with jax.numpy, elementwise "
            f"on real arrays, free of values that are being traced ({type(error).__name__})"
        ) from error
    if values.shape != leading + block.shape:
        raise ValueError(
            f"activation: an elementwise function is wanted; shape {block.shape} came back as {values.shape}"
        )
    return values
