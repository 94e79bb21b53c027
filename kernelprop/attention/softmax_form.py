"""An attention matrix as softmax attention: ``A = diag(D) softmax(B + mask)``."""

from typing import NamedTuple

import numpy as np


class SoftmaxForm(NamedTuple):
    """What realises an attention matrix in a softmax layer whose queries are zero.

    ``A = diag(rescale) softmax(bias + mask)``: ``rescale = A 1`` divides rows, ``bias = log(A_ij / D_i)``, and
    0 where the mask forbids (He et al. 2023, section 4; theory: softmax realisation).

    Shapes: ``rescale (T,)``, ``bias (T, T)``, ``mask (T, T)`` bool, True = may attend; a head axis ``H`` and a
    layer axis ``L`` come before, in the order ``L, H, T``. The mask is one for all layers and heads unless they
    differ in which entries are zero; then it has their axes too.
    """

    rescale: np.ndarray
    bias: np.ndarray
    mask: np.ndarray


def layer_softmax_form(matrix: np.ndarray, log_matrix: np.ndarray) -> SoftmaxForm:
    """Split one layer's matrix, ``(T, T)`` or ``(H, T, T)``, into rescale, bias and mask.

    Raises:
        ValueError: naming the first negative entry, or the first row without any positive one.
    """
    negative = np.argwhere(matrix < 0)
    if len(negative):
        *head, i, j = (int(k) for k in negative[0])
        where = f"head {head[0]}, " if head else ""
        value = matrix[tuple(negative[0])]
        raise ValueError(
            f"softmax form: {where}entry ({i}, {j}) is {value:.12g}; softmax attention has no negative entries"
        )
    mask = log_matrix > -np.inf
    empty = np.argwhere(~mask.any(-1))
    if len(empty):
        *head, i = (int(k) for k in empty[0])
        where = f"head {head[0]}, " if head else ""
        raise ValueError(f"softmax form: {where}position {i} attends to nothing; a softmax row sums to 1")
    rescale = matrix.sum(-1)
    bias = np.where(mask, log_matrix, 0.0) - np.where(mask, np.log(rescale)[..., None], 0.0)
    return SoftmaxForm(rescale, bias, _shared(mask, matrix.ndim - 2))


def stack_softmax_forms(forms: list[SoftmaxForm]) -> SoftmaxForm:
    """Put the forms of ``L`` layers together, with one mask where all agree."""
    masks = np.stack(np.broadcast_arrays(*(form.mask for form in forms)))
    return SoftmaxForm(
        np.stack([form.rescale for form in forms]),
        np.stack([form.bias for form in forms]),
        _shared(masks, 1),
    )


def _shared(mask: np.ndarray, leading: int) -> np.ndarray:
    """Drop the leading axes of a mask if it is the same along them."""
    first = mask[(0,) * leading]
    return first if (mask == first).all() else mask


def log_entries(matrix: np.ndarray) -> np.ndarray:
    """The entrywise logarithm, minus infinity at zeros (and at negative entries, refused elsewhere)."""
    return np.log(matrix, out=np.full(matrix.shape, -np.inf), where=matrix > 0)
