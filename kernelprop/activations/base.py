"""What an activation is: a scalar function with its two dual kernels."""

import abc
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from kernelprop.activations.row_blocks import in_row_blocks


class Activation(eqx.Module):
    """A scalar function ``phi`` together with the Gaussian expectations that propagate a kernel through it.

    ``(u, v) ~ N(0, [[q1, r], [r, q2]])`` with ``r = c sqrt(q1 q2)`` throughout. Every method can be traced,
    keeps the dtype of ``q`` and ``c`` (float32 or float64) and trusts ``|c| <= 1`` up to rounding; a
    gradient that is infinite (the slope of ``Kdot`` of a ReLU at ``c = 1``, of ``sqrt(q)`` at 0) is given as
    0, so that gradients stay finite.
    """

    @property
    @abc.abstractmethod
    def name(self) -> str:
        """The name, or for a function without one what Python calls it."""

    @abc.abstractmethod
    def __call__(self, x: Any, /) -> Array:
        """``phi(x)``, elementwise, in the dtype of ``x``."""

    @abc.abstractmethod
    def dual(self, q1: Float[Array, "..."], q2: Float[Array, "..."], c: Float[Array, "..."]) -> Array:
        """``K = E[phi(u) phi(v)]``, elementwise over arguments of one shape."""

    @abc.abstractmethod
    def dual_derivative(self, q1: Float[Array, "..."], q2: Float[Array, "..."], c: Float[Array, "..."]) -> Array:
        """``Kdot = E[phi'(u) phi'(v)]``, elementwise over arguments of one shape."""

    @abc.abstractmethod
    def kernel(self, q: Float[Array, " T"], c: Float[Array, "T T"]) -> Float[Array, "T T"]:
        """``K(q_i, q_j, c_ij)`` of a whole kernel matrix; ``c`` is symmetric, its diagonal is taken as 1."""

    @abc.abstractmethod
    def kernel_derivative(self, q: Float[Array, " T"], c: Float[Array, "T T"]) -> Float[Array, "T T"]:
        """``Kdot(q_i, q_j, c_ij)`` of a whole kernel matrix; ``c`` is symmetric, its diagonal is taken as 1."""

    @abc.abstractmethod
    def mean(self, q: Float[Array, "..."]) -> Float[Array, "..."]:
        """``E phi(u)``."""

    @abc.abstractmethod
    def second_moment(self, q: Float[Array, "..."]) -> Float[Array, "..."]:
        """``E phi(u)^2``: the diagonal of ``kernel``."""

    @abc.abstractmethod
    def derivative_second_moment(self, q: Float[Array, "..."]) -> Float[Array, "..."]:
        """``E phi'(u)^2``: the diagonal of ``kernel_derivative``."""


class ClosedForm(Activation):
    """An activation whose dual kernels are elementary functions: the matrix forms apply them entry by entry."""

    def kernel(self, q: Float[Array, " T"], c: Float[Array, "T T"]) -> Float[Array, "T T"]:
        """``K(q_i, q_j, c_ij)``; one fused pass over the entries."""
        return _on_pairs(self.dual, self.second_moment(q), q, c)

    def kernel_derivative(self, q: Float[Array, " T"], c: Float[Array, "T T"]) -> Float[Array, "T T"]:
        """``Kdot(q_i, q_j, c_ij)``; one fused pass over the entries."""
        return _on_pairs(self.dual_derivative, self.derivative_second_moment(q), q, c)


def _on_pairs(dual: Any, diagonal: Array, q: Array, c: Array) -> Array:
    own = jnp.eye(len(q), dtype=bool)
    # Whatever stands on the diagonal of c, no gradient comes from there.
    off = in_row_blocks(lambda one, row: dual(one, q[None, :], row), q, jnp.where(own, jnp.ones_like(c), c))
    # The entries off the diagonal use roots of q, whose square is q only to rounding; the diagonal is exact.
    return jnp.where(own, diagonal[:, None], off)
