"""Sums over windows of positions, by small products."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from kernelprop.attention.decayed_prefix import block_length
from kernelprop.precision import full_product

# Measured on blocks of positions: of so few, one product with a matrix of all is the fastest.
ONE_BLOCK = 32


class Window(NamedTuple):
    """Sums over ``j = i + first … i + last`` in blocks of positions.

    A window takes blocks whole but for those at its ends. ``parts[k]``, zeros and ones, is what the block that lies
    ``k`` ahead gives to a block's windows where it isn't taken whole; from ``whole[0]`` to ``whole[1]`` ahead it is.
    """

    size: int
    blocks: int
    parts: dict[int, np.ndarray]
    whole: tuple[int, int] | None

    def matrix(self) -> np.ndarray:
        """All parts side by side, and a column of ones for the sum of the block, ``(size, len(parts)·size + 1)``."""
        return np.concatenate([*self.parts.values(), np.ones((self.size, 1))], axis=1)


def window_sums(x: Float[Array, "*batch T"], first: int, last: int) -> Float[Array, "*batch T"]:
    """``y_i = Σ_{j = i + first … i + last} x_j`` along the last axis, zeros beyond the ends; ``first <= last``.

    ``O(T)`` a row by products with small matrices, and nothing is subtracted.
    """
    length = x.shape[-1]
    window = _window(length, first, last)
    if window.blocks == 1:
        return _product(x, window.parts[0])
    padding = [(0, 0)] * (x.ndim - 1) + [(0, window.blocks * window.size - length)]
    pieces = jnp.pad(x, padding).reshape(*x.shape[:-1], window.blocks, window.size)
    total = _assembled(window, _product(pieces, window.matrix()), x.ndim - 1, window_sums)
    return total.reshape(*x.shape[:-1], -1)[..., :length]


def window_sums_of_rows(x: Float[Array, "T d"], first: int, last: int) -> Float[Array, "T d"]:
    """`window_sums` down the rows."""
    length, width = x.shape
    window = _window(length, first, last)
    if window.blocks == 1:
        return _product(window.parts[0].T, x)
    pieces = jnp.pad(x, ((0, window.blocks * window.size - length), (0, 0))).reshape(window.blocks, window.size, width)
    total = _assembled(window, _product(window.matrix().T, pieces), 0, window_sums_of_rows)
    return total.reshape(-1, width)[:length]


def _assembled(window: Window, products: Array, axis: int, sums: Callable[[Array, int, int], Array]) -> Array:
    """The sums from what `Window.matrix` makes of every block; blocks along ``axis``, its products along the next."""
    size = window.size
    shape = (*products.shape[: axis + 1], size, *products.shape[axis + 2 :])
    total = jnp.zeros(shape, products.dtype)
    for place, ahead in enumerate(window.parts):
        total += _ahead(lax.slice_in_dim(products, place * size, (place + 1) * size, axis=axis + 1), ahead, axis)
    if window.whole:
        of_blocks = lax.index_in_dim(products, -1, axis + 1, keepdims=False)
        total += jnp.expand_dims(sums(of_blocks, *window.whole), axis + 1)
    return total


def _window(length: int, first: int, last: int) -> Window:
    """The blocks of a window; so few positions that one product does are one block."""
    if length <= ONE_BLOCK:
        return Window(length, 1, {0: _inside(0, length, first, last)}, None)
    size = block_length(length)
    count = -(-length // size)
    parts = {k: _inside(k, size, first, last) for k in range(1 - count, count)}
    whole = [k for k, part in parts.items() if part.all()]
    ends = {k: part for k, part in parts.items() if part.any() and not part.all()}
    return Window(size, count, ends, (whole[0], whole[-1]) if whole else None)


def _inside(ahead: int, size: int, first: int, last: int) -> np.ndarray:
    """``M[m, i] = 1`` where position ``m`` of a block lies in the window of position ``i``, ``ahead`` blocks before."""
    place = ahead * size + np.arange(size)[:, None] - np.arange(size)[None, :]
    return ((place >= first) & (place <= last)).astype(float)


def _ahead(x: Array, blocks: int, axis: int) -> Array:
    """``y_I = x_{I + k}`` along an axis of blocks, zeros beyond the ends."""
    kept = lax.slice_in_dim(x, max(blocks, 0), x.shape[axis] + min(blocks, 0), axis=axis)
    padding = [(0, 0)] * x.ndim
    padding[axis] = (max(-blocks, 0), max(blocks, 0))
    return jnp.pad(kept, padding)


def _product(left: Array | np.ndarray, right: Array | np.ndarray) -> Array:
    dtype = (left if isinstance(left, jax.Array) else right).dtype
    return full_product(jnp.asarray(left, dtype), jnp.asarray(right, dtype))
