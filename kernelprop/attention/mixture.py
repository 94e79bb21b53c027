"""Attention with a share of the identity: ``αI + βA``."""

from typing import Any, Self

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from kernelprop import door
from kernelprop.attention.dense import dense
from kernelprop.attention.layer import AttentionLayer
from kernelprop.attention.row_panels import action_on_both_sides
from kernelprop.attention.softmax_form import log_entries
from kernelprop.attention.stack import AttentionOperator, AttentionStack


class Mixture(AttentionLayer):
    """``αI + βA`` for one layer ``A`` of any structure.

    ``value_skip`` says how a network realises it: the values take a skip of their own beside the softmax ``A``
    (Value-SkipInit), or the softmax makes the whole matrix. The kernel maps don't ask, gradients do.

    Shapes: ``alpha``, ``beta`` are scalars (``(H,)`` where heads have been split).
    """

    alpha: Float[Any, "*layers"]
    beta: Float[Any, "*layers"]
    inner: AttentionLayer
    value_skip: bool = eqx.field(static=True, default=True)

    @property
    def length(self) -> int:
        """The number of positions ``T``."""
        return self.inner.length

    @property
    def heads(self) -> int | None:
        """The number of heads of ``A``."""
        return self.inner.heads

    def split_heads(self) -> Self:
        """The same layer with α and β repeated for every head."""
        heads = self.inner.heads or 1
        return type(self)(
            jnp.broadcast_to(self.alpha, (heads,)),
            jnp.broadcast_to(self.beta, (heads,)),
            self.inner.split_heads(),
            self.value_skip,
        )

    def act(self, x: Float[Array, "*batch T"]) -> Float[Array, "*batch T"]:
        """``αx + βAx`` along the last axis."""
        return self._shares(x, self.inner.act(x))

    def act_transposed(self, x: Float[Array, "*batch T"]) -> Float[Array, "*batch T"]:
        """``αx + βAᵀx`` along the last axis."""
        return self._shares(x, self.inner.act_transposed(x))

    def act_on_rows(self, x: Float[Array, "T d"]) -> Float[Array, "T d"]:
        """``αX + βAX``."""
        return self._shares(x, self.inner.act_on_rows(x))

    def act_transposed_on_rows(self, x: Float[Array, "T d"]) -> Float[Array, "T d"]:
        """``αX + βAᵀX``."""
        return self._shares(x, self.inner.act_transposed_on_rows(x))

    def sandwich(self, kernel: Float[Array, "T T"]) -> Float[Array, "T T"]:
        """``(αI + βA) S (αI + βA)ᵀ`` of a symmetric ``S``."""
        mixed = self.inner.mixed(*self._weights(kernel))
        if mixed is not None:
            return mixed.sandwich(kernel)
        return action_on_both_sides(self.act, self.act_on_rows, kernel)

    def sandwich_transposed(self, kernel: Float[Array, "T T"]) -> Float[Array, "T T"]:
        """``(αI + βA)ᵀ S (αI + βA)`` of a symmetric ``S``."""
        mixed = self.inner.mixed(*self._weights(kernel))
        if mixed is not None:
            return mixed.sandwich_transposed(kernel)
        return action_on_both_sides(self.act_transposed, self.act_transposed_on_rows, kernel)

    def _shares(self, x: Array, attended: Array) -> Array:
        alpha, beta = self._weights(x)
        return alpha * x + beta * attended

    def _weights(self, x: Array) -> tuple[Array, Array]:
        return jnp.asarray(self.alpha, x.dtype), jnp.asarray(self.beta, x.dtype)

    def mixed(self, alpha: Float[Array, ""], beta: Float[Array, ""]) -> None:
        """None: with a share of the identity the structure is another."""
        return None

    def matrix(self) -> np.ndarray:
        """The entries of ``αI + βA``."""
        return np.float64(self.alpha) * np.eye(self.length) + np.float64(self.beta) * self.inner.matrix()

    def log_matrix(self) -> np.ndarray:
        """The logarithm of the entries."""
        return log_entries(self.matrix())


def mix(attention: Any, alpha: Any, beta: Any) -> Mixture | AttentionStack:
    """``αI + βA``: attention with a share of the identity.

    Args:
        attention: an operator, or matrices as for `dense`.
        alpha: the identity's weight, a number or one a layer, ``(L,)``.
        beta: the attention's weight, likewise.

    Raises:
        ValueError: for weights that are not finite or whose number differs from the layers'.

    >>> mix([[0.0, 1.0], [1.0, 0.0]], 0.5, 2.0).as_matrix()
    array([[0.5, 2. ],
           [2. , 0.5]])
    """
    operator = attention if isinstance(attention, AttentionLayer | AttentionStack) else dense(attention)
    weights = [door.real_array(w, f"mix: {n}").astype(np.float64) for w, n in ((alpha, "alpha"), (beta, "beta"))]
    depth = _common_depth(operator, weights)
    if depth is None and isinstance(operator, AttentionLayer):
        return Mixture(weights[0], weights[1], operator)
    depth = depth or 1
    layers = operator.layers if isinstance(operator, AttentionStack) else _repeat(operator, depth)
    alphas, betas = (np.broadcast_to(weight, (depth,)) for weight in weights)
    return AttentionStack(Mixture(alphas, betas, layers))


def value_skip_init(attention: Any, alpha: Any = 1.0, beta: Any = 0.0) -> Mixture | AttentionStack:
    """Value-SkipInit: ``αI + βA``, a skip of the values beside the softmax, with ``α = 1, β = 0`` at initialisation.

    A network then starts as if it had no attention, and ``α`` and ``β`` are trained (He et al. 2023, section 5). It is
    `mix` with these weights.

    >>> value_skip_init([[0.5, 0.5], [0.5, 0.5]]).as_matrix()
    array([[1., 0.],
           [0., 1.]])
    """
    return mix(attention, alpha, beta)


def _common_depth(operator: AttentionOperator, weights: list[np.ndarray]) -> int | None:
    for weight in weights:
        if weight.ndim > 1:
            raise ValueError(f"mix: a weight is a number or one a layer; its shape is {weight.shape}")
    depths = {depth for depth in (operator.depth, *(len(w) if w.ndim else None for w in weights)) if depth}
    if len(depths) > 1:
        raise ValueError(f"mix: attention, alpha and beta have different depths: {sorted(depths)}")
    return depths.pop() if depths else None


def _repeat(layer: AttentionLayer, depth: int) -> AttentionLayer:
    return jax.tree.map(lambda leaf: np.broadcast_to(leaf, (depth, *np.shape(leaf))), layer)
