"""Several sequences at once: the same attention inside each, none between them."""

from collections.abc import Callable
from typing import Any, Self

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Float

from kernelprop import door
from kernelprop.attention.dense import dense
from kernelprop.attention.layer import AttentionLayer
from kernelprop.attention.row_panels import action_on_both_sides
from kernelprop.attention.softmax_form import log_entries
from kernelprop.attention.stack import AttentionStack


class BlockDiagonal(AttentionLayer):
    """``N`` copies of a ``T × T`` layer along the diagonal, over ``N·T`` positions."""

    inner: AttentionLayer
    copies: int = eqx.field(static=True)

    @property
    def length(self) -> int:
        """The number of positions of all sequences together."""
        return self.copies * self.inner.length

    @property
    def heads(self) -> int | None:
        """The number of heads of the layer inside."""
        return self.inner.heads

    def split_heads(self) -> Self:
        """The same layer with the inner one's heads split."""
        return type(self)(self.inner.split_heads(), self.copies)

    def act(self, x: Float[Array, "*batch T"]) -> Float[Array, "*batch T"]:
        """``A x`` inside each sequence."""
        return self.inner.act(self._sequences(x)).reshape(x.shape)

    def act_transposed(self, x: Float[Array, "*batch T"]) -> Float[Array, "*batch T"]:
        """``Aᵀ x`` inside each sequence."""
        return self.inner.act_transposed(self._sequences(x)).reshape(x.shape)

    def act_on_rows(self, x: Float[Array, "T d"]) -> Float[Array, "T d"]:
        """``A X`` inside each sequence."""
        return self._over_sequences(self.inner.act_on_rows, x)

    def act_transposed_on_rows(self, x: Float[Array, "T d"]) -> Float[Array, "T d"]:
        """``Aᵀ X`` inside each sequence."""
        return self._over_sequences(self.inner.act_transposed_on_rows, x)

    def sandwich(self, kernel: Float[Array, "T T"]) -> Float[Array, "T T"]:
        """``A S Aᵀ`` of a symmetric ``S``, blocks between different sequences included."""
        return action_on_both_sides(self.act, self.act_on_rows, kernel)

    def sandwich_transposed(self, kernel: Float[Array, "T T"]) -> Float[Array, "T T"]:
        """``Aᵀ S A`` of a symmetric ``S``, blocks between different sequences included."""
        return action_on_both_sides(self.act_transposed, self.act_transposed_on_rows, kernel)

    def mixed(self, alpha: Float[Array, ""], beta: Float[Array, ""]) -> None:
        """None: with a share of the identity the structure is another."""
        return None

    def matrix(self) -> np.ndarray:
        """The block-diagonal matrix."""
        return np.kron(np.eye(self.copies), self.inner.matrix())

    def log_matrix(self) -> np.ndarray:
        """The blocks' logarithms; minus infinity between sequences."""
        inner = self.inner.log_matrix()
        same = np.kron(np.eye(self.copies), np.ones((self.inner.length,) * 2)) > 0
        repeated = np.tile(inner, (1,) * (inner.ndim - 2) + (self.copies, self.copies))
        return np.where(same, repeated, log_entries(np.zeros(1)))

    def _sequences(self, x: Array) -> Array:
        return x.reshape(*x.shape[:-1], self.copies, self.inner.length)

    def _over_sequences(self, function: Callable[[Array], Array], x: Array) -> Array:
        return jax.vmap(function)(x.reshape(self.copies, self.inner.length, -1)).reshape(x.shape)


def block_diagonal(attention: Any, copies: int) -> BlockDiagonal | AttentionStack:
    """The same attention over ``copies`` sequences that don't see one another, ``(N·T, N·T)``.

    The kernel then holds the correlations within and between the sequences.

    >>> block_diagonal([[0.5, 0.5], [0.5, 0.5]], copies=2).as_matrix()
    array([[0.5, 0.5, 0. , 0. ],
           [0.5, 0.5, 0. , 0. ],
           [0. , 0. , 0.5, 0.5],
           [0. , 0. , 0.5, 0.5]])
    """
    copies = door.count(copies, "block_diagonal: copies")
    operator = attention if isinstance(attention, AttentionLayer | AttentionStack) else dense(attention)
    if isinstance(operator, AttentionStack):
        return AttentionStack(BlockDiagonal(operator.layers, copies))
    return BlockDiagonal(operator, copies)
