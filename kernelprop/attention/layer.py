"""What an attention matrix can do: the interface of one layer, and the algebra that all layers share."""

from abc import abstractmethod
from functools import partial
from typing import Any, Self

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from kernelprop import door
from kernelprop.attention.softmax_form import SoftmaxForm, layer_softmax_form
from kernelprop.precision import numpy_in_numpy_out


class AttentionLayer(eqx.Module):
    """One layer's attention matrix ``A``, shape ``(T, T)``, or one for each of ``H`` heads.

    A subclass says how its headless matrix acts on the last axis of an array (``act``), how its transpose
    does, and what its entries are. Everything else is here. The array leaves are numpy float64; they are
    cast to the dtype of what the operator acts on.
    """

    @property
    @abstractmethod
    def length(self) -> int:
        """The number of positions ``T``."""

    @property
    @abstractmethod
    def heads(self) -> int | None:
        """The number of heads that have a matrix of their own, None where all share one."""

    @abstractmethod
    def act(self, x: Float[Array, "*batch T"]) -> Float[Array, "*batch T"]:
        """``A x`` along the last axis, for a layer without a head axis."""

    @abstractmethod
    def act_transposed(self, x: Float[Array, "*batch T"]) -> Float[Array, "*batch T"]:
        """``Aᵀ x`` along the last axis, for a layer without a head axis."""

    def act_on_rows(self, x: Float[Array, "T d"]) -> Float[Array, "T d"]:
        """``A X``, down the rows, for a layer without a head axis."""
        return self.act(x.T).T

    def act_transposed_on_rows(self, x: Float[Array, "T d"]) -> Float[Array, "T d"]:
        """``Aᵀ X``, down the rows, for a layer without a head axis."""
        return self.act_transposed(x.T).T

    @abstractmethod
    def sandwich(self, kernel: Float[Array, "T T"]) -> Float[Array, "T T"]:
        """``A S Aᵀ`` of a symmetric ``S``, for a layer without a head axis."""

    @abstractmethod
    def sandwich_transposed(self, kernel: Float[Array, "T T"]) -> Float[Array, "T T"]:
        """``Aᵀ S A`` of a symmetric ``S``, for a layer without a head axis."""

    @abstractmethod
    def mixed(self, alpha: Float[Array, ""], beta: Float[Array, ""]) -> "AttentionLayer | None":
        """``αI + βA`` as a layer of this structure, None if it has another (for a layer without a head axis)."""

    @abstractmethod
    def matrix(self) -> np.ndarray:
        """The entries, float64, ``(T, T)`` or ``(H, T, T)``, written from their formula."""

    @abstractmethod
    def log_matrix(self) -> np.ndarray:
        """The logarithm of the entries; minus infinity only where an entry is zero by construction."""

    @abstractmethod
    def split_heads(self) -> Self:
        """The same layer, without heads, with every array leaf stacked along a leading head axis."""

    @property
    def depth(self) -> None:
        """None: one layer, which a network repeats as often as it is deep."""
        return None

    def matmul(self, x: Any) -> Any:
        """``A X`` for ``X`` of shape ``(T, d)``; ``(T, d)``, or ``(H, T, d)`` with heads.

        numpy in, numpy out (in the dtype of ``X``; integers become float64); JAX arrays stay JAX arrays.
        """
        return _on_columns(_act, self, operand(x, self.length))

    def rmatmul(self, x: Any) -> Any:
        """``Aᵀ X`` for ``X`` of shape ``(T, d)``; ``(T, d)``, or ``(H, T, d)`` with heads."""
        return _on_columns(_act_transposed, self, operand(x, self.length))

    def conjugate(self, kernel: Any) -> Any:
        """``A S Aᵀ``, averaged over heads, for ``S`` of shape ``(T, T)``, symmetric or not."""
        return _conjugate(self, operand(kernel, self.length))

    def conjugate_transposed(self, kernel: Any) -> Any:
        """``Aᵀ S A``, averaged over heads: the map of a cotangent kernel."""
        return _conjugate_transposed(self, operand(kernel, self.length))

    def as_matrix(self) -> np.ndarray:
        """The matrix itself, float64, ``(T, T)`` or ``(H, T, T)``."""
        return self.matrix()

    def softmax_form(self) -> SoftmaxForm:
        """``D``, ``B`` and the mask with ``A = diag(D) softmax(B + mask)``; see `SoftmaxForm`."""
        return layer_softmax_form(self.matrix(), self.log_matrix())


def operand(value: Any, length: int) -> Any:
    """Accept a JAX array as it is, anything else as a float32 or float64 numpy array with ``length`` rows."""
    array = value if isinstance(value, jax.Array) else door.real_array(value, "operand")
    if array.ndim < 2 or array.shape[-2] != length:
        raise ValueError(f"operand: shape {array.shape} does not fit attention over {length} positions")
    return array


def over_heads(function: Any, layer: AttentionLayer, x: Any) -> Any:
    """Map a headless operation over the heads; without heads, just do it."""
    if layer.heads is None:
        return function(layer, x)
    return jax.vmap(lambda one: function(one, x))(layer.split_heads())


def mean_over_heads(function: Any, layer: AttentionLayer, x: Float[Array, "T T"]) -> Float[Array, "T T"]:
    """Average a headless operation over the heads, one head at a time to bound the memory."""
    if layer.heads is None:
        return function(layer, x)

    def add(total: Array, one: AttentionLayer) -> tuple[Array, None]:
        return total + function(one, x), None

    total, _ = lax.scan(add, jnp.zeros_like(x), jax.tree.map(jnp.asarray, layer.split_heads()))
    return total / layer.heads


def sandwich(layer: AttentionLayer, kernel: Float[Array, "T T"]) -> Float[Array, "T T"]:
    """``mean_h A_h S A_hᵀ`` of a symmetric kernel (traceable)."""
    return mean_over_heads(lambda one, s: one.sandwich(s), layer, kernel)


def sandwich_transposed(layer: AttentionLayer, kernel: Float[Array, "T T"]) -> Float[Array, "T T"]:
    """``mean_h A_hᵀ S A_h`` of a symmetric kernel (traceable)."""
    return mean_over_heads(lambda one, s: one.sandwich_transposed(s), layer, kernel)


def _act(layer: AttentionLayer, x: Array) -> Array:
    return over_heads(lambda one, y: one.act(y), layer, x)


def _act_transposed(layer: AttentionLayer, x: Array) -> Array:
    return over_heads(lambda one, y: one.act_transposed(y), layer, x)


@numpy_in_numpy_out
@partial(jax.jit, static_argnums=0)
def _on_columns(action: Any, layer: AttentionLayer, x: Any) -> Any:
    return jnp.swapaxes(action(layer, jnp.swapaxes(x, -1, -2)), -1, -2)


def _general_sandwich(action: Any, kernel: Array) -> Array:
    rows = jnp.swapaxes(action(jnp.swapaxes(kernel, -1, -2)), -1, -2)
    return action(rows)


@numpy_in_numpy_out
@jax.jit
def _conjugate(layer: AttentionLayer, kernel: Any) -> Any:
    return mean_over_heads(lambda one, s: _general_sandwich(one.act, s), layer, kernel)


@numpy_in_numpy_out
@jax.jit
def _conjugate_transposed(layer: AttentionLayer, kernel: Any) -> Any:
    return mean_over_heads(lambda one, s: _general_sandwich(one.act_transposed, s), layer, kernel)
