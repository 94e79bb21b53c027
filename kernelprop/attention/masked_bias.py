"""The bias and the mask of a softmax, checked once for every attention that takes them."""

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from kernelprop import door
from kernelprop.attention.softmax import softmax_of_numbers


class MaskedBias(NamedTuple):
    """What is added to the logits, and where a position may attend.

    Shapes: ``bias (…, rows, T)``, finite, 0 where masked; ``mask (rows, T)``, True = may attend. ``rows`` is
    ``T``, or 1 where all rows are alike; ``…`` is a head axis or nothing.
    """

    bias: Float[np.ndarray, "*heads rows T"]
    mask: Bool[np.ndarray, "rows T"]


def masked_bias(length: int, bias: Any, mask: Any, causal: bool, name: str) -> MaskedBias:
    """Check a bias and a mask, and put the causal mask in.

    Args:
        length: the number of positions ``T``.
        bias: ``(T, T)``, ``(H, T, T)`` with one a head, or None; minus infinity masks, in all heads or none.
        mask: bool, ``(T, T)``, or ``(T,)`` over keys (padding); True = may attend. Or None.
        causal: whether a position attends only to itself and those before it.
        name: who asks, for messages.

    Raises:
        ValueError: for other shapes, entries that are NaN or plus infinity, a mask that isn't bool, and a row
            whose every key is masked, naming it.

    >>> masked_bias(3, None, [True, True, False], causal=False, name="attention").mask
    array([[ True,  True, False]])
    >>> masked_bias(2, None, [[True, False], [False, False]], causal=False, name="attention")
    Traceback (most recent call last):
    ValueError: attention: position 1: every key is masked; a softmax row needs at least one
    """
    allowed = np.ones((1, length), bool) if mask is None else checked_mask(length, mask, name)
    if causal:
        allowed = allowed & np.tri(length, dtype=bool)
    values = np.zeros((1, length)) if bias is None else _bias(length, bias, name)
    allowed = allowed & _finite_in_all_heads(values, name)
    empty = np.flatnonzero(~allowed.any(-1))
    if len(empty):
        raise ValueError(f"{name}: position {empty[0]}: every key is masked; a softmax row needs at least one")
    shape = np.broadcast_shapes(values.shape, allowed.shape)
    return MaskedBias(np.where(allowed, np.broadcast_to(values, shape), 0.0), np.broadcast_to(allowed, shape[-2:]))


def masked_softmax(parts: MaskedBias) -> Float[np.ndarray, "*heads rows T"]:
    """``softmax(B + mask)`` in numpy; exact zeros where masked."""
    return softmax_of_numbers(parts.bias, parts.mask)


def positive_rescale(length: int, rescale: Any, name: str) -> Float[np.ndarray, "T"]:
    """Check ``D``: positive numbers, ``(T,)``, that multiply the rows of a softmax."""
    values = door.real_array(rescale, f"{name}: rescale").astype(np.float64)
    if values.shape != (length,):
        raise ValueError(f"{name}: rescale: shape {values.shape} is not ({length},)")
    if (values <= 0).any():
        i = int(np.argmax(values <= 0))
        raise ValueError(f"{name}: rescale: position {i}: {values[i]:g} is not positive")
    return values


def checked_mask(length: int, mask: Any, name: str) -> Bool[np.ndarray, "rows T"]:
    """Check a mask, ``(T,)`` over keys or ``(T, T)``, True = may attend; ``rows`` is 1 or ``T``."""
    array = np.asarray(mask)
    if array.dtype != bool:
        raise ValueError(f"{name}: mask: dtype {array.dtype} is not bool; True means that the key may be attended to")
    if array.shape not in ((length,), (length, length)):
        raise ValueError(f"{name}: mask: shape {array.shape} is neither ({length},) nor ({length}, {length})")
    return array.reshape(-1, length)


def _bias(length: int, bias: Any, name: str) -> np.ndarray:
    array = door.real_array(bias, f"{name}: bias", allow_infinite=True).astype(np.float64)
    if array.ndim not in (2, 3) or array.shape[-2:] != (length, length) or 0 in array.shape:
        raise ValueError(
            f"{name}: bias: shape {array.shape} is neither ({length}, {length}) nor (H, {length}, {length})"
        )
    bad = np.argwhere(array == np.inf)
    if len(bad):
        index = tuple(int(k) for k in bad[0])
        raise ValueError(f"{name}: bias: entry {index} is inf; entries are finite, or -inf where masked")
    return array


def _finite_in_all_heads(values: np.ndarray, name: str) -> np.ndarray:
    finite = values > -np.inf
    heads = finite.reshape(-1, *finite.shape[-2:])
    differing = np.argwhere(heads != heads[0])
    if len(differing):
        head, i, j = (int(k) for k in differing[0])
        raise ValueError(f"{name}: bias: entry ({i}, {j}) is masked in one of heads 0 and {head} only; share the mask")
    return heads[0]
