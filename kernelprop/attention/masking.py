"""Given attention under a mask: padding, or any other keys that positions may not attend to."""

from typing import Any

import jax
import numpy as np

from kernelprop import door
from kernelprop.attention.dense import Dense, dense
from kernelprop.attention.layer import AttentionLayer
from kernelprop.attention.masked_bias import checked_mask
from kernelprop.attention.mixture import Mixture, mix
from kernelprop.attention.softmax import softmax_of_numbers
from kernelprop.attention.softmax_form import log_entries
from kernelprop.attention.stack import AttentionOperator, AttentionStack


def masked(attention: Any, mask: Any) -> AttentionOperator:
    """What a mask makes of given attention: ``A_ij ← D_i A_ij m_ij / Σ_k A_ik m_ik``, ``D_i = Σ_j A_ij``.

    It is ``D softmax(B + mask)``, ``B = log(D⁻¹A)``: masked keys get exactly nothing, the others share their weight in
    proportion, and every row keeps its sum. Of ``αI + βA`` the mask is that of ``A``. Padding positions are rows like
    any other, which nobody else reads: leave them out of what is read off a kernel, as in ``kernel[np.ix_(m, m)]``.

    Args:
        attention: an operator, or matrices as for `dense`.
        mask: bool, ``(T,)`` over keys (padding), or ``(T, T)``; True = may attend.

    Raises:
        ValueError: for a mask of another shape or type; for negative entries, which no softmax has; and for a row whose
            every key is masked, or has weight 0, naming layer, head and position.

    >>> masked([[0.5, 0.25, 0.25], [0.2, 0.6, 0.2], [0.0, 0.5, 0.5]], [True, True, False]).as_matrix()
    array([[0.66666667, 0.33333333, 0.        ],
           [0.25      , 0.75      , 0.        ],
           [0.        , 1.        , 0.        ]])
    """
    given = attention if isinstance(attention, AttentionLayer | AttentionStack) else dense(attention)
    layers = given.layers if isinstance(given, AttentionStack) else given
    if isinstance(layers, Mixture) and layers.value_skip:
        deep = isinstance(given, AttentionStack) and jax.tree.leaves(layers.inner)
        inner = AttentionStack(layers.inner) if deep else layers.inner
        return mix(masked(inner, mask), layers.alpha, layers.beta)
    allowed = checked_mask(given.length, mask, "masked")
    rows = Dense(_masked_rows(given.as_matrix(), allowed, isinstance(given, AttentionStack)), given.heads)
    return AttentionStack(rows) if isinstance(given, AttentionStack) else rows


def _masked_rows(matrices: np.ndarray, allowed: np.ndarray, deep: bool) -> np.ndarray:
    axes = ("layer", "head", "position", "column")
    names = (axes if deep else axes[1:])[: matrices.ndim - 2] + axes[2:]
    for index in np.argwhere(matrices < 0)[:1].tolist():
        entry = f"{door.place(names, index)}: the entry is {matrices[tuple(index)]:g}"
        raise ValueError(f"masked: {entry}; a mask acts on a softmax, which has none below 0")
    open_keys = np.broadcast_to(allowed, matrices.shape) & (matrices > 0)
    for index in np.argwhere(~np.any(open_keys, axis=-1))[:1].tolist():
        raise ValueError(f"masked: {door.place(names[:-1], index)}: every key that it attends to is masked")
    return matrices.sum(-1, keepdims=True) * softmax_of_numbers(log_entries(matrices), open_keys)
