"""The floating-point type that a computation runs in, whatever the process's JAX flag says."""

from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array

FLOATS = ("float32", "float64")

P = ParamSpec("P")
R = TypeVar("R")


def float_dtype(dtype: Any) -> np.dtype:
    """Return the numpy dtype of a precision that the engines compute in.

    Raises:
        ValueError: for anything but float32 and float64; nothing is lowered silently.

    >>> float_dtype("float64")
    dtype('float64')
    >>> float_dtype("float16")
    Traceback (most recent call last):
    ValueError: dtype: float16 is not supported; use float32 or float64
    """
    try:
        name = np.dtype(dtype).name
    except TypeError:
        name = str(dtype)
    # longdouble is called float64 on platforms where it is one; there it is one.
    if name not in FLOATS:
        raise ValueError(f"dtype: {name} is not supported; use float32 or float64")
    return np.dtype(name)


def full_product(left: Array, right: Array) -> Array:
    """``left right`` in the precision of its operands: some devices multiply in fewer digits unless told otherwise."""
    return jnp.matmul(left, right, precision=lax.Precision.HIGHEST)


def to_numpy(tree: Any) -> Any:
    """Turn every JAX array of a pytree into a numpy array of the same dtype."""
    return jax.tree.map(lambda leaf: np.asarray(leaf) if isinstance(leaf, jax.Array) else leaf, tree)


def in_double(function: Callable[P, R]) -> Callable[P, R]:
    """Run a function with 64-bit types allowed; its arrays leave as numpy arrays of the dtype computed in.

    JAX lowers float64 arrays as soon as they are touched outside the scope, so none may leave it.
    """

    @wraps(function)
    def scoped(*args: P.args, **kwargs: P.kwargs) -> R:
        with jax.enable_x64(True):
            return to_numpy(function(*args, **kwargs))

    return scoped


def numpy_in_numpy_out(function: Callable[P, R]) -> Callable[P, R]:
    """Let one formula serve both worlds.

    With JAX arrays (or tracers) among the arguments it runs as it stands, in their dtype. Otherwise it runs
    with 64-bit types allowed and its arrays come back as numpy arrays.
    """
    scoped = in_double(function)

    @wraps(function)
    def either(*args: P.args, **kwargs: P.kwargs) -> R:
        leaves = jax.tree.leaves((args, kwargs))
        inside_jax = any(isinstance(leaf, jax.Array) for leaf in leaves)
        return (function if inside_jax else scoped)(*args, **kwargs)

    return either
