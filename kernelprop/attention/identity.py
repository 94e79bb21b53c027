"""Attention that leaves every position alone."""

from typing import Self

import equinox as eqx
import numpy as np
from jaxtyping import Array, Float

from kernelprop import door
from kernelprop.attention.layer import AttentionLayer
from kernelprop.attention.softmax_form import log_entries


class Identity(AttentionLayer):
    """``A = I`` over ``T`` positions."""

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
        """``x``."""
        return x

    def act_transposed(self, x: Float[Array, "*batch T"]) -> Float[Array, "*batch T"]:
        """``x``."""
        return x

    def sandwich(self, kernel: Float[Array, "T T"]) -> Float[Array, "T T"]:
        """``S``."""
        return kernel

    def sandwich_transposed(self, kernel: Float[Array, "T T"]) -> Float[Array, "T T"]:
        """``S``."""
        return kernel

    def mixed(self, alpha: Float[Array, ""], beta: Float[Array, ""]) -> None:
        """None: with a share of the identity the structure is another."""
        return None

    def matrix(self) -> np.ndarray:
        """The identity matrix."""
        return np.eye(self.length)

    def log_matrix(self) -> np.ndarray:
        """Zero on the diagonal, minus infinity elsewhere."""
        return log_entries(np.eye(self.length))


def identity(length: int) -> Identity:
    """Attention that leaves every position alone: ``A = I``.

    Args:
        length: the number of positions ``T``.

    >>> identity(2).conjugate([[1.0, 0.3], [0.3, 2.0]])
    array([[1. , 0.3],
           [0.3, 2. ]])
    """
    return Identity(door.count(length, "identity: length"))
