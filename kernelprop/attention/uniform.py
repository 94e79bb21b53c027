"""Attention that spreads evenly: over all positions, or over those up to its own."""

from typing import Self

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from kernelprop import door
from kernelprop.attention.layer import AttentionLayer
from kernelprop.attention.semiseparable import Origin, Semiseparable


class Uniform(AttentionLayer):
    """``A = 11ᵀ/T``: every position attends to all alike."""

    positions: int = eqx.field(static=True)

    @property
    def length(self) -> int:
        """The number of positions ``T``."""
        return self.positions

    @property
    def heads(self) -> None:
        """None: all heads share the matrix."""
        return None

    def split_heads(self) -> Self:
        """Not wanted: there are no heads to split."""
        raise ValueError("this attention has no head axis")

    def act(self, x: Float[Array, "*batch T"]) -> Float[Array, "*batch T"]:
        """The mean over positions, at every position."""
        return jnp.broadcast_to(jnp.mean(x, axis=-1, keepdims=True), x.shape)

    def act_transposed(self, x: Float[Array, "*batch T"]) -> Float[Array, "*batch T"]:
        """The same: the matrix is symmetric."""
        return self.act(x)

    def sandwich(self, kernel: Float[Array, "T T"]) -> Float[Array, "T T"]:
        """The mean of all entries, everywhere."""
        return jnp.broadcast_to(jnp.mean(kernel), kernel.shape)

    def sandwich_transposed(self, kernel: Float[Array, "T T"]) -> Float[Array, "T T"]:
        """The mean of all entries, everywhere."""
        return self.sandwich(kernel)

    def mixed(self, alpha: Float[Array, ""], beta: Float[Array, ""]) -> None:
        """None: with a share of the identity the structure is another."""
        return None

    def matrix(self) -> np.ndarray:
        """Every entry 1/T."""
        return np.full((self.length, self.length), 1 / self.length)

    def log_matrix(self) -> np.ndarray:
        """Every entry −log T."""
        return np.full((self.length, self.length), -np.log(self.length))


def uniform(length: int, causal: bool = False) -> Uniform | Semiseparable:
    """Attention that spreads evenly: ``A_ij = 1/T``, or, causal, ``A_ij = 1/(i+1)`` for ``j ≤ i``.

    Args:
        length: the number of positions ``T``.
        causal: whether a position attends only to itself and those before it.

    >>> uniform(2, causal=True).as_matrix()
    array([[1. , 0. ],
           [0.5, 0.5]])
    """
    length = door.count(length, "uniform: length")
    if not causal:
        return Uniform(length)
    weights = 1 / np.arange(1.0, length + 1)
    return Semiseparable(
        diagonal=weights,
        left=weights[None],
        right=np.ones((1, length)),
        log_decay=np.zeros(1),
        origin=Origin("causal uniform", {}),
    )
