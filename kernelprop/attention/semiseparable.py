"""Lower-triangular attention whose strictly lower part has low rank: E-SPA, U-SPA, the causal mean."""

from dataclasses import replace
from functools import reduce
from operator import add
from typing import Any, Self

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from kernelprop.attention.decayed_prefix import decayed_prefix, decayed_suffix
from kernelprop.attention.layer import AttentionLayer
from kernelprop.attention.row_blocks import RowBlocks, act_on_rows, act_on_rows_transposed, row_blocks
from kernelprop.attention.row_panels import through_panels
from kernelprop.attention.softmax_form import log_entries


class Origin(eqx.Module):
    """Where a structured matrix comes from: its name, and the numbers that made it."""

    name: str = eqx.field(static=True)
    numbers: dict[str, Float[Any, "*layers"]]


class Semiseparable(AttentionLayer):
    """``A_ii = diagonal_i``, ``A_ij = Σ_k left_ki right_kj e^{(i−1−j) log_decay_k}`` for ``i > j``.

    The rank of the strictly lower part is 1 for E-SPA and the causal mean, 2 for U-SPA. ``A X`` is a decayed
    prefix sum, so that ``A S Aᵀ`` costs ``O(T²)`` and no ``T × T`` matrix is built.

    Shapes: ``diagonal (T,)``, ``left``, ``right`` ``(rank, T)``, ``log_decay (rank,)``.
    """

    diagonal: Float[Any, "*layers T"]
    left: Float[Any, "*layers rank T"]
    right: Float[Any, "*layers rank T"]
    log_decay: Float[Any, "*layers rank"]
    origin: Origin

    @property
    def length(self) -> int:
        """The number of positions ``T``."""
        return self.diagonal.shape[-1]

    @property
    def heads(self) -> None:
        """None: all heads share the matrix."""
        return None

    def split_heads(self) -> Self:
        """Not wanted: there are no heads to split."""
        raise ValueError("this attention has no head axis")

    def act(self, x: Float[Array, "*batch T"]) -> Float[Array, "*batch T"]:
        """``A x`` along the last axis, by prefix sums."""
        diagonal, *terms = self._terms(x)
        below = (left * decayed_prefix(right * x, decay) for left, right, decay in terms)
        return reduce(add, below, diagonal * x)

    def act_transposed(self, x: Float[Array, "*batch T"]) -> Float[Array, "*batch T"]:
        """``Aᵀ x`` along the last axis, by suffix sums."""
        diagonal, *terms = self._terms(x)
        above = (right * decayed_suffix(left * x, decay) for left, right, decay in terms)
        return reduce(add, above, diagonal * x)

    def act_on_rows(self, x: Float[Array, "T d"]) -> Float[Array, "T d"]:
        """``A X`` by blocks of rows."""
        return act_on_rows(self._blocks(x.dtype), x, None)[0]

    def act_transposed_on_rows(self, x: Float[Array, "T d"]) -> Float[Array, "T d"]:
        """``Aᵀ X`` by blocks of rows."""
        return act_on_rows_transposed(self._blocks(x.dtype), x, None)[0]

    def sandwich(self, kernel: Float[Array, "T T"]) -> Float[Array, "T T"]:
        """``A S Aᵀ`` of a symmetric ``S`` in ``O(T²)``: on the columns, then along the rows, panel by panel."""
        blocks = self._blocks(kernel.dtype)

        def panel(first: Array, rows: Array, before: Array | None) -> tuple[Array, Array | None]:
            acted, behind = act_on_rows(blocks.panel(first, len(rows)), rows, before)
            return self.act(acted), behind

        return through_panels(panel, kernel, blocks.nothing(kernel))

    def sandwich_transposed(self, kernel: Float[Array, "T T"]) -> Float[Array, "T T"]:
        """``Aᵀ S A`` of a symmetric ``S`` in ``O(T²)``: on the columns, then along the rows, the last panel first."""
        blocks = self._blocks(kernel.dtype)

        def panel(first: Array, rows: Array, behind: Array | None) -> tuple[Array, Array | None]:
            acted, before = act_on_rows_transposed(blocks.panel(first, len(rows)), rows, behind)
            return self.act_transposed(acted), before

        return through_panels(panel, kernel, blocks.nothing(kernel), backwards=True)

    def mixed(self, alpha: Float[Array, ""], beta: Float[Array, ""]) -> Self:
        """``αI + βA``, of the same structure."""
        return replace(self, diagonal=alpha + beta * self.diagonal, left=beta * self.left)

    def matrix(self) -> np.ndarray:
        """The entries, ``(T, T)``."""
        lag = _lag(self.length)
        decays = np.exp(_times(lag, self.log_decay))
        below = np.einsum("ki,kj,kij->ij", self.left, self.right, np.where(lag >= 0, decays, 0.0))
        return np.diag(self.diagonal) + below

    def log_matrix(self) -> np.ndarray:
        """The logarithm of the entries: of rank 1 term by term, so that none is lost to underflow."""
        lag = _lag(self.length)
        left, right = log_entries(self.left), log_entries(self.right)
        terms = left[:, :, None] + right[:, None, :] + _times(lag, self.log_decay)
        below = np.logaddexp.reduce(terms, axis=0)
        logs = np.where(lag >= 0, below, -np.inf)
        np.fill_diagonal(logs, log_entries(self.diagonal))
        return logs

    def _blocks(self, dtype: Any) -> RowBlocks:
        parts = (self.diagonal, self.left, self.right, self.log_decay)
        return row_blocks(*(jnp.asarray(part, dtype) for part in parts))

    def _terms(self, x: Array) -> tuple:
        """The diagonal and the rank-one terms, in the dtype of ``x``, broadcast against its last axis."""
        shape = (1,) * (x.ndim - 1) + (self.length,)

        def cast(leaf: Array | np.ndarray) -> Array:
            return jnp.asarray(leaf, x.dtype)

        terms = [
            (cast(left).reshape(shape), cast(right).reshape(shape), cast(decay))
            for left, right, decay in zip(self.left, self.right, self.log_decay, strict=True)
        ]
        return cast(self.diagonal).reshape(shape), *terms


def _lag(length: int) -> np.ndarray:
    positions = np.arange(length)
    return positions[:, None] - positions[None, :] - 1


def _times(lag: np.ndarray, log_decay: np.ndarray) -> np.ndarray:
    """``lag · log_decay``, ``(rank, T, T)``, with 0 · (−∞) = 0 and nothing above the diagonal."""
    lag = np.maximum(lag, 0)
    finite = np.where(lag == 0, 0.0, log_decay[:, None, None])
    return lag * finite
