"""The table ``[input]``: the kernel that enters the first layer."""

from collections.abc import Callable
from typing import Any

import numpy as np

from kernelprop import door, kernels, trust
from kernelprop.descriptions.attention import one_array
from kernelprop.descriptions.entries import Kind, Place, Reader, array, number, read_kind


def read_input(table: Any, place: Place) -> np.ndarray | Callable[[int], np.ndarray]:
    """Read an input kernel, or how to make it once the number of positions is known."""
    return read_kind({} if table is None else table, KINDS, place, default="identity")


def of_length(kernel: np.ndarray | Callable[[int], np.ndarray], length: int, place: Place) -> np.ndarray:
    """Make the kernel over ``length`` positions, or check that the given one has as many.

    Raises:
        ValueError: where it has another number, or a number in it is wrong.
    """
    with place.blame(_CALLED.values(), {name: (entry,) for name, entry in _CALLED.items()}):
        made = kernel if isinstance(kernel, np.ndarray) else kernel(length)
        if made.shape[-1] != length:
            raise ValueError(f"{made.shape[-1]} positions, but the attention has {length}")
    return made


def _tokens(tokens: np.ndarray, correlation: float = 0.0) -> np.ndarray:
    return kernels.from_tokens(tokens, correlation)


def _embedded(file: Any = None, matrix: Any = None) -> np.ndarray:
    return kernels.from_inputs(one_array(file, matrix))


def _given(file: Any = None, matrix: Any = None) -> np.ndarray:
    return trust.certify(door.kernel(one_array(file, matrix), "kernel").astype(np.float64))


_ARRAY: dict[str, Reader] = {"file": array, "matrix": array}
# What kernels call their numbers, and what a description does.
_CALLED = {"rho": "correlation", "gamma": "decay"}
KINDS = {
    "identity": Kind(lambda: kernels.identity, {}),
    "equicorrelated": Kind(
        lambda correlation: lambda length: kernels.equicorrelated(length, correlation),
        {"correlation": number},
        ("correlation",),
    ),
    "exponential": Kind(lambda decay: lambda length: kernels.exponential(length, decay), {"decay": number}, ("decay",)),
    "tokens": Kind(_tokens, {"tokens": array, "correlation": number}, ("tokens",)),
    "embedded": Kind(_embedded, _ARRAY, (), {"inputs": tuple(_ARRAY)}),
    "given": Kind(_given, _ARRAY, (), {"kernel": tuple(_ARRAY)}),
}
