"""Any scalar function as an activation: its dual kernels by expansion and quadrature."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from kernelprop.activations.base import Activation
from kernelprop.activations.expectation import line_expectation, matrix_expectation, pair_expectation
from kernelprop.activations.integrand import Integrand, integrand
from kernelprop.activations.safe import correlation


class Numeric(Activation):
    """A function without closed forms, smooth between its kinks, that JAX can trace and differentiate.

    ``kinks`` are the places where it, or a derivative of it, jumps. Places that dense sampling sees (features
    wider than about 1/2000 near 0) are found without being declared; narrower ones must be declared.
    """

    function: Callable[[Array], Array] = eqx.field(static=True)
    label: str = eqx.field(static=True)
    kinks: tuple[float, ...] = eqx.field(static=True, default=())

    @property
    def name(self) -> str:
        """The label."""
        return self.label

    @property
    def integrand(self) -> Integrand:
        """The function as the quadrature sees it."""
        return integrand(self.function, self.kinks)

    def __call__(self, x: Any, /) -> Array:
        """The function itself."""
        return self.function(jnp.asarray(x))

    def dual(self, q1: Float[Array, "..."], q2: Float[Array, "..."], c: Float[Array, "..."]) -> Array:
        """``E[phi(u) phi(v)]``."""
        return _elementwise(self.integrand, q1, q2, c)

    def dual_derivative(self, q1: Float[Array, "..."], q2: Float[Array, "..."], c: Float[Array, "..."]) -> Array:
        """``E[phi'(u) phi'(v)]``."""
        return _elementwise(self.integrand.derivative, q1, q2, c)

    def kernel(self, q: Float[Array, " T"], c: Float[Array, "T T"]) -> Float[Array, "T T"]:
        """``K(q_i, q_j, c_ij)``: coefficients once a position, one pass over the entries."""
        f = self.integrand
        return matrix_expectation(f, f, q, correlation(c))

    def kernel_derivative(self, q: Float[Array, " T"], c: Float[Array, "T T"]) -> Float[Array, "T T"]:
        """``Kdot(q_i, q_j, c_ij)``: coefficients once a position, one pass over the entries."""
        f = self.integrand.derivative
        return matrix_expectation(f, f, q, correlation(c))

    def mean(self, q: Float[Array, "..."]) -> Float[Array, "..."]:
        """``E phi(u)``."""
        return line_expectation(self.integrand, q)

    def second_moment(self, q: Float[Array, "..."]) -> Float[Array, "..."]:
        """``E phi(u)^2``."""
        return line_expectation(self.integrand, q, 2)

    def derivative_second_moment(self, q: Float[Array, "..."]) -> Float[Array, "..."]:
        """``E phi'(u)^2``."""
        return line_expectation(self.integrand.derivative, q, 2)


def _elementwise(f: Integrand, q1: Array, q2: Array, c: Array) -> Array:
    q1, q2, c = jnp.broadcast_arrays(q1, q2, c)
    if not c.size:
        return jnp.zeros_like(c)
    return pair_expectation(f, f, q1.ravel(), q2.ravel(), correlation(c).ravel()).reshape(c.shape)
