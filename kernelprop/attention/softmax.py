"""The softmax of attention, in the one place where it is called: over traced logits, and over given numbers."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float


def softmax(logits: Float[Array, "*rows T"], mask: Bool[Array, "*#rows T"] | None = None) -> Float[Array, "*rows T"]:
    """``softmax`` over the keys, the last axis; exact zeros where masked (False, or a logit of −∞).

    A row whose every key is masked (False) attends to nothing: it is zero, and so is its gradient.

    >>> softmax(jnp.zeros((2, 2)), jnp.array([[True, True], [False, False]]))
    Array([[0.5, 0.5],
           [0. , 0. ]], dtype=float32)
    """
    if mask is None:
        return jax.nn.softmax(logits, axis=-1)
    mask = jnp.broadcast_to(mask, logits.shape)
    # The lowest number rather than −inf, so that a row without keys is no 0/0 and its gradient no NaN.
    weights = jax.nn.softmax(jnp.where(mask, logits, jnp.finfo(logits.dtype).min), axis=-1)
    return jnp.where(mask, weights, 0)


def softmax_of_numbers(logits: Float[np.ndarray, "*rows T"], mask: Bool[np.ndarray, "*#rows T"]) -> np.ndarray:
    """The same in numpy, of rows with at least one key each.

    >>> softmax_of_numbers(np.zeros((1, 3)), np.array([[True, True, False]]))
    array([[0.5, 0.5, 0. ]])
    """
    kept = np.where(mask, logits, -np.inf)
    # Logits further apart than the largest number have a weight of zero as well.
    with np.errstate(over="ignore"):
        weights = np.exp(kept - kept.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True)
