"""Biases that depend on the distance of two positions, and the attention that a bias alone makes."""

from typing import Any

import numpy as np
from jaxtyping import Float, Int

from kernelprop import door
from kernelprop.attention.dense import Dense
from kernelprop.attention.masked_bias import masked_bias, masked_softmax, positive_rescale


def alibi_slopes(heads: int) -> Float[np.ndarray, "H"]:
    """The slopes of ALiBi: ``2^(−8h/H)``, ``h = 1 … H``, for a power of two.

    For other ``H`` those of the power of two below, followed by every other one of those of the power above, as
    the authors do (Press et al. 2022, arXiv 2108.12409).

    >>> alibi_slopes(2)
    array([0.0625    , 0.00390625])
    >>> alibi_slopes(3)
    array([0.0625    , 0.00390625, 0.25      ])
    """
    heads = door.count(heads, "alibi: heads")
    below = 1 << (heads.bit_length() - 1)
    return np.concatenate([_geometric(below), _geometric(2 * below)[::2][: heads - below]])


def alibi_bias(length: int, heads: int | None = None, slopes: Any = None) -> Float[np.ndarray, "H T T"]:
    """``B_ij = −m_h |i − j|``, ``(H, T, T)``: one slope a head, or ``(T, T)`` for one number.

    Args:
        length: the number of positions ``T``.
        heads: the number of heads, whose slopes are those of `alibi_slopes`.
        slopes: ``m``, a number or ``(H,)``, instead.

    Raises:
        ValueError: unless exactly one of ``heads`` and ``slopes`` is given; for bad numbers.

    >>> alibi_bias(3, slopes=0.5)[2]
    array([-1. , -0.5,  0. ])
    """
    length = door.count(length, "alibi: length")
    if (heads is None) == (slopes is None):
        raise ValueError("alibi: give heads or slopes, one of the two")
    values = door.real_array(slopes, "alibi: slopes") if heads is None else alibi_slopes(heads)
    if values.ndim > 1 or not values.size:
        raise ValueError(f"alibi: slopes: shape {values.shape} is neither () nor (H,)")
    return values.astype(np.float64)[..., None, None] * np.minimum(_offset(length), -_offset(length))


def t5_buckets(length: int, buckets: int = 32, max_distance: int = 128, causal: bool = False) -> Int[np.ndarray, "T T"]:
    """The bucket of ``j − i``: small distances one by one, larger ones in logarithmic steps, ``(T, T)``.

    ``n`` buckets a direction (half of them all, unless causal): distances below ``n/2`` have their own, a distance
    ``a`` beyond has ``n/2 + ⌊(n/2) log(2a/n) / log(2·max_distance/n)⌋``, at most ``n − 1``. Keys behind the query come
    first, those ahead after; causal, those ahead fall into bucket 0 (Raffel et al. 2020, arXiv 1910.10683).

    Raises:
        ValueError: for fewer than 2 buckets a direction, an odd number for both, and a distance that is too small.

    >>> t5_buckets(4, buckets=8, max_distance=16)[0]
    array([0, 5, 6, 6])
    """
    length = door.count(length, "t5: length")
    buckets = door.count(buckets, "t5: buckets", least=2 if causal else 4)
    if not causal and buckets % 2:
        raise ValueError(f"t5: buckets: {buckets} is odd; there are two directions")
    each = buckets if causal else buckets // 2
    exact = each // 2
    max_distance = door.count(max_distance, "t5: max_distance", least=exact + 1)
    offset = _offset(length).T  # j − i
    distance = np.maximum(-offset, 0) if causal else np.abs(offset)
    step = np.log(np.maximum(distance, exact) / exact) / np.log(max_distance / exact) * (each - exact)
    # A distance at the edge of a bucket lies in it, whatever the logarithms round to.
    logarithmic = np.minimum(exact + np.floor(step + 1e-9).astype(int), each - 1)
    bucket = np.where(distance < exact, distance, logarithmic)
    return bucket if causal else bucket + each * (offset > 0)


def t5_bias(length: int, table: Any, causal: bool = False, max_distance: int = 128) -> Float[np.ndarray, "*heads T T"]:
    """``B_ij = table[bucket(j − i)]``, ``(T, T)``, or ``(H, T, T)`` from a table with a column a head.

    Args:
        length: the number of positions ``T``.
        table: ``(buckets,)`` or ``(buckets, H)``.
        causal: whether all buckets are for keys behind the query.
        max_distance: from it on all distances share a bucket.

    >>> t5_bias(3, [0.0, 1.0, 2.0, 3.0])
    array([[0., 3., 3.],
           [1., 0., 3.],
           [1., 1., 0.]])
    """
    values = door.real_array(table, "t5: table").astype(np.float64)
    if values.ndim not in (1, 2) or 0 in values.shape:
        raise ValueError(f"t5: table: shape {values.shape} is neither (buckets,) nor (buckets, H)")
    by_position = values[t5_buckets(length, len(values), max_distance, causal)]
    return by_position if values.ndim == 1 else np.moveaxis(by_position, -1, 0)


def softmax_attention(bias: Any, mask: Any = None, rescale: Any = None, causal: bool = False) -> Dense:
    """``A = D softmax(B + mask)``: softmax attention while ``W_Q = 0``, as given matrices.

    Args:
        bias: ``B``, ``(T, T)``, or ``(H, T, T)`` with one a head; minus infinity masks.
        mask: bool, ``(T, T)``, or ``(T,)`` over keys (padding); True = may attend.
        rescale: ``D``, positive, ``(T,)``; multiplies the rows.
        causal: whether a position attends only to itself and those before it.

    Raises:
        ValueError: for other shapes, and a row whose every key is masked, naming it.

    >>> softmax_attention(np.zeros((2, 2)), causal=True).as_matrix()
    array([[1. , 0. ],
           [0.5, 0.5]])
    """
    name = "softmax_attention"
    length = np.shape(bias)[-1] if np.ndim(bias) else 0
    parts = masked_bias(length, bias, mask, causal, name)
    matrix = masked_softmax(parts)
    if rescale is not None:
        matrix = positive_rescale(length, rescale, name)[:, None] * matrix
    return Dense(matrix, len(matrix) if matrix.ndim == 3 else None)


def _geometric(heads: int) -> np.ndarray:
    return 2.0 ** (-8 * np.arange(1, heads + 1) / heads)


def _offset(length: int) -> np.ndarray:
    """``i − j``."""
    return np.arange(length)[:, None] - np.arange(length)
