"""Numbers that a user gives once for all layers, or one a layer."""

from typing import Any

import equinox as eqx
import numpy as np

from kernelprop import door


def number(value: Any, name: str) -> np.ndarray:
    """Accept a number, or one a layer, ``(L,)``, as float64.

    Raises:
        ValueError: for other shapes and for what is not finite.
    """
    array = door.real_array(value, name).astype(np.float64)
    if array.ndim > 1:
        raise ValueError(f"{name}: a number, or one a layer, is wanted; its shape is {array.shape}")
    return array


def nonnegative(value: Any, name: str) -> np.ndarray:
    """The same for numbers that can't be negative."""
    array = number(value, name)
    if (array < 0).any():
        raise ValueError(f"{name}: {array.min():g} is negative")
    return array


def repeat(value: np.ndarray, depth: int, name: str) -> np.ndarray:
    """Spread a number over ``depth`` layers, ``(L,)``.

    Raises:
        ValueError: where there are as many numbers as another depth.
    """
    if np.ndim(value) and len(value) != depth:
        raise ValueError(f"{name}: {len(value)} values for {depth} layers")
    return np.broadcast_to(value, (depth,))


def spread(module: Any, names: tuple[str, ...], depth: int, label: str) -> Any:
    """Replace numbers of a module by one a layer."""
    values = [repeat(getattr(module, name), depth, f"{label}: {name}") for name in names]
    return eqx.tree_at(lambda one: [getattr(one, name) for name in names], module, values)
