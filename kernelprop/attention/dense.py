"""Given attention matrices."""

from typing import Any, Self

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from kernelprop import door
from kernelprop.attention.layer import AttentionLayer
from kernelprop.attention.softmax_form import log_entries
from kernelprop.attention.stack import AttentionStack
from kernelprop.attention.symmetric_product import symmetric_product
from kernelprop.precision import full_product


class Dense(AttentionLayer):
    """A given matrix, ``(T, T)``, or one a head, ``(H, T, T)``."""

    entries: Float[Any, "*layers T T"]
    head_count: int | None = eqx.field(static=True)

    @property
    def length(self) -> int:
        """The number of positions ``T``."""
        return self.entries.shape[-1]

    @property
    def heads(self) -> int | None:
        """The number of heads that have a matrix of their own."""
        return self.head_count

    def split_heads(self) -> Self:
        """The same matrices, the head axis read as a stack of headless layers."""
        return type(self)(self.entries, None)

    def act(self, x: Float[Array, "*batch T"]) -> Float[Array, "*batch T"]:
        """``A x`` along the last axis."""
        return full_product(x, jnp.asarray(self.entries, x.dtype).T)

    def act_transposed(self, x: Float[Array, "*batch T"]) -> Float[Array, "*batch T"]:
        """``Aᵀ x`` along the last axis."""
        return full_product(x, jnp.asarray(self.entries, x.dtype))

    def sandwich(self, kernel: Float[Array, "T T"]) -> Float[Array, "T T"]:
        """``A S Aᵀ`` of a symmetric ``S``: two matrix products, of the second one what symmetry leaves."""
        matrix = jnp.asarray(self.entries, kernel.dtype)
        return symmetric_product(full_product(matrix, kernel), matrix.T)

    def sandwich_transposed(self, kernel: Float[Array, "T T"]) -> Float[Array, "T T"]:
        """``Aᵀ S A`` of a symmetric ``S``: two matrix products, of the second one what symmetry leaves."""
        matrix = jnp.asarray(self.entries, kernel.dtype)
        return symmetric_product(full_product(matrix.T, kernel), matrix)

    def mixed(self, alpha: Float[Array, ""], beta: Float[Array, ""]) -> Self:
        """``αI + βA``, as a matrix."""
        return type(self)(alpha * jnp.eye(self.length, dtype=jnp.asarray(beta).dtype) + beta * self.entries, None)

    def matrix(self) -> np.ndarray:
        """The given entries, in float64."""
        return np.asarray(self.entries, np.float64)

    def log_matrix(self) -> np.ndarray:
        """The logarithm of the given entries."""
        return log_entries(self.matrix())


def dense(matrices: Any) -> Dense | AttentionStack:
    """Given attention matrices, rows attending to columns: ``(T, T)``, ``(L, T, T)`` or ``(L, H, T, T)``.

    Any finite real matrices are accepted: rows need not sum to 1, and negative entries are fine for
    propagation (but have no softmax form). A ``(T, T)`` matrix is one layer, which a network repeats.

    Raises:
        ValueError: for other shapes, and for entries that are not finite, with layer, head and position.

    >>> dense([[0.5, 0.5], [0.25, 0.75]]).matmul([[1.0], [3.0]])
    array([[2. ],
           [2.5]])
    """
    array = np.asarray(matrices)
    if array.ndim not in (2, 3, 4) or array.shape[-1] != array.shape[-2] or 0 in array.shape:
        raise ValueError(f"attention: shape {array.shape} is not (T, T), (L, T, T) or (L, H, T, T)")
    _finite(array)
    array = door.real_array(array, "attention").astype(np.float64)
    layers = Dense(array, array.shape[1] if array.ndim == 4 else None)
    return layers if array.ndim == 2 else AttentionStack(layers)


def _finite(array: np.ndarray) -> None:
    """Refuse a NaN or infinite entry, naming its layer, head, position and column."""
    bad = np.argwhere(~np.isfinite(array)) if array.dtype.kind == "f" else np.empty((0, array.ndim), int)
    for index in map(tuple, bad.tolist()):
        named = (*("layer", "head")[: array.ndim - 2], "position", "column")
        raise ValueError(f"attention: {door.place(named, index)}: {array[index]} is not finite")
