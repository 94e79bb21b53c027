"""Uniform attention over the last positions alone."""

from typing import Self

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from kernelprop import door
from kernelprop.attention.layer import AttentionLayer
from kernelprop.attention.row_panels import action_on_both_sides
from kernelprop.attention.softmax_form import log_entries
from kernelprop.attention.window_sums import window_sums, window_sums_of_rows


class SlidingWindow(AttentionLayer):
    """``A_ij = 1/n_i`` for ``i − before ≤ j ≤ i + after``, ``n_i`` the number of such positions."""

    positions: int = eqx.field(static=True)
    before: int = eqx.field(static=True)
    after: int = eqx.field(static=True)

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
        """The mean over each window, ``O(T)`` a row."""
        return window_sums(x, -self.before, self.after) * self._weights(x)

    def act_transposed(self, x: Float[Array, "*batch T"]) -> Float[Array, "*batch T"]:
        """The sum over the windows that a position lies in, weighed."""
        return window_sums(x * self._weights(x), -self.after, self.before)

    def act_on_rows(self, x: Float[Array, "T d"]) -> Float[Array, "T d"]:
        """The mean over each window of rows."""
        return self._weights(x.T).T * window_sums_of_rows(x, -self.before, self.after)

    def act_transposed_on_rows(self, x: Float[Array, "T d"]) -> Float[Array, "T d"]:
        """The sum over the windows that a row lies in, weighed."""
        return window_sums_of_rows(self._weights(x.T).T * x, -self.after, self.before)

    def sandwich(self, kernel: Float[Array, "T T"]) -> Float[Array, "T T"]:
        """``A S Aᵀ`` in ``O(T²)``."""
        return action_on_both_sides(self.act, self.act_on_rows, kernel)

    def sandwich_transposed(self, kernel: Float[Array, "T T"]) -> Float[Array, "T T"]:
        """``Aᵀ S A`` in ``O(T²)``."""
        return action_on_both_sides(self.act_transposed, self.act_transposed_on_rows, kernel)

    def mixed(self, alpha: Float[Array, ""], beta: Float[Array, ""]) -> None:
        """None: with a share of the identity the structure is another."""
        return None

    def matrix(self) -> np.ndarray:
        """The entries, ``(T, T)``."""
        lag = np.arange(self.length)[:, None] - np.arange(self.length)
        inside = (lag <= self.before) & (lag >= -self.after)
        return inside / inside.sum(-1, keepdims=True)

    def log_matrix(self) -> np.ndarray:
        """The logarithm of the entries; minus infinity outside the window."""
        return log_entries(self.matrix())

    def _weights(self, x: Array) -> Array:
        position = np.arange(self.length)
        first = np.maximum(position - self.before, 0)
        last = np.minimum(position + self.after, self.length - 1)
        return jnp.asarray(1 / (last - first + 1), x.dtype).reshape((1,) * (x.ndim - 1) + (self.length,))


def sliding_window(length: int, width: int, causal: bool = True) -> SlidingWindow:
    """Attention that spreads evenly over a window of positions.

    Causal: over the last ``width`` positions, its own included, ``A_ij = 1/min(i + 1, width)`` for ``i − width < j ≤
    i``. Otherwise over all positions less than ``width`` away, on either side.

    Args:
        length: the number of positions ``T``.
        width: of the window; at least ``T`` gives `uniform`.
        causal: whether a position attends only to itself and those before it.

    >>> sliding_window(3, 2).as_matrix()
    array([[1. , 0. , 0. ],
           [0.5, 0.5, 0. ],
           [0. , 0.5, 0.5]])
    """
    length = door.count(length, "sliding_window: length")
    reach = min(door.count(width, "sliding_window: width"), length) - 1
    return SlidingWindow(length, reach, 0 if causal else reach)
