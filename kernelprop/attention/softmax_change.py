"""How far a softmax moves when its logits do, right to relative precision however small the move."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from kernelprop.attention.softmax import softmax

# Within it the form by expm1 is safe from overflow, beyond it a plain difference loses nothing.
SMALL = 1.0


def softmax_change(
    logits: Float[Array, "*rows T"], move: Float[Array, "*more T"]
) -> tuple[Float[Array, "*rows T"], Float[Array, "*more T"]]:
    """``p = softmax(logits)`` and ``softmax(logits + move) − p``, along the last axis.

    With ``m = move − p·move`` and ``e = expm1(m)`` the change is ``p (e − p·e)/(1 + p·e)``: of a move of order
    ε it has the order ε and the relative error of rounding, where the difference of two softmaxes would have
    lost ``1/ε`` of it. Rows that move far are differences.

    Args:
        logits: ``−inf`` where masked, at least one finite in a row.
        move: finite; its other axes broadcast against those of ``logits``.

    >>> p, change = softmax_change(jnp.zeros((1, 2)), jnp.array([[0.0, 2e-20]]))
    >>> change
    Array([[-5.e-21,  5.e-21]], dtype=float32)
    """
    before = softmax(logits)
    move = move - jnp.sum(before * move, axis=-1, keepdims=True)
    far = jnp.max(jnp.where(before > 0, jnp.abs(move), 0.0), axis=-1, keepdims=True) > SMALL
    growth = jnp.expm1(jnp.clip(move, -SMALL, SMALL))
    mean_growth = jnp.sum(before * growth, axis=-1, keepdims=True)
    near_change = before * ((growth - mean_growth) / (1 + mean_growth))
    far_change = softmax(logits + move) - before
    return before, jnp.where(far, far_change, near_change)
