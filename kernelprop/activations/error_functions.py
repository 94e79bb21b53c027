"""erf and GELU: Gaussian integrals of the error function.

erf: Williams, "Computing with infinite networks" (1996). GELU: Tsuchida et al. (arXiv 2002.08517); the form
here follows from Stein's lemma applied to ``u v Phi(u) Phi(v)``, once for ``u`` and once for ``v``.
"""

import math
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from kernelprop.activations.arccosine import angle
from kernelprop.activations.base import ClosedForm
from kernelprop.activations.safe import correlation, one_minus_square, root


class Erf(ClosedForm):
    """``erf(x)``: ``K = (2/pi) arcsin(2r / sqrt((1+2 q1)(1+2 q2)))``, ``r = c sqrt(q1 q2)``."""

    @property
    def name(self) -> str:
        """``erf``."""
        return "erf"

    def __call__(self, x: Any, /) -> Array:
        """``erf(x)``."""
        return jax.lax.erf(jnp.asarray(x))

    def dual(self, q1: Float[Array, "..."], q2: Float[Array, "..."], c: Float[Array, "..."]) -> Array:
        """``E[phi(u) phi(v)]``."""
        c = correlation(c)
        return 2 / math.pi * angle(2 * c * root(q1) * root(q2), jnp.sqrt(_determinant(2 * q1, 2 * q2, c)))

    def dual_derivative(self, q1: Float[Array, "..."], q2: Float[Array, "..."], c: Float[Array, "..."]) -> Array:
        """``E[phi'(u) phi'(v)] = (4/pi)/sqrt(det(I + 2 Sigma))``."""
        return 4 / math.pi / jnp.sqrt(_determinant(2 * q1, 2 * q2, correlation(c)))

    def mean(self, q: Float[Array, "..."]) -> Float[Array, "..."]:
        """0, by symmetry."""
        return jnp.zeros_like(q)

    def second_moment(self, q: Float[Array, "..."]) -> Float[Array, "..."]:
        """``(2/pi) arcsin(2q/(1+2q))``."""
        return 2 / math.pi * angle(2 * q, jnp.sqrt(1 + 4 * q))

    def derivative_second_moment(self, q: Float[Array, "..."]) -> Float[Array, "..."]:
        """``(4/pi)/sqrt(1+4q)``."""
        return 4 / math.pi / jnp.sqrt(1 + 4 * q)


class GELU(ClosedForm):
    """``x Phi(x)``, ``Phi`` the normal distribution function (the exact form, not the tanh form).

    With ``r = c sqrt(q1 q2)``, ``D = det(I + Sigma) = (1+q1)(1+q2) - r^2``, ``s = 1/(1+q1) + 1/(1+q2)`` and
    ``J = E[Phi(u) Phi(v)] = 1/4 + arctan(r/sqrt D)/(2 pi)``:
    ``K = r J + (q1 q2 - r^2 + r^2 s)/(2 pi sqrt D)``, ``Kdot = J + r (s + 1/D)/(2 pi sqrt D)``.
    """

    @property
    def name(self) -> str:
        """``gelu``."""
        return "gelu"

    def __call__(self, x: Any, /) -> Array:
        """``x Phi(x)``."""
        return jax.nn.gelu(jnp.asarray(x), approximate=False)

    def dual(self, q1: Float[Array, "..."], q2: Float[Array, "..."], c: Float[Array, "..."]) -> Array:
        """``E[phi(u) phi(v)]``."""
        c = correlation(c)
        r = c * root(q1) * root(q2)
        width = jnp.sqrt(_determinant(q1, q2, c))
        across = q1 * q2 * one_minus_square(c) + r * r * (1 / (1 + q1) + 1 / (1 + q2))
        return r * _both_positive(r, width) + across / (2 * math.pi * width)

    def dual_derivative(self, q1: Float[Array, "..."], q2: Float[Array, "..."], c: Float[Array, "..."]) -> Array:
        """``E[phi'(u) phi'(v)]``."""
        c = correlation(c)
        r = c * root(q1) * root(q2)
        square = _determinant(q1, q2, c)
        width = jnp.sqrt(square)
        inverses = 1 / (1 + q1) + 1 / (1 + q2) + 1 / square
        return _both_positive(r, width) + r * inverses / (2 * math.pi * width)

    def mean(self, q: Float[Array, "..."]) -> Float[Array, "..."]:
        """``q/sqrt(2 pi (1+q))``."""
        return q / jnp.sqrt(2 * math.pi * (1 + q))

    def second_moment(self, q: Float[Array, "..."]) -> Float[Array, "..."]:
        """``q J + q^2/(pi (1+q) sqrt(1+2q))``."""
        width = jnp.sqrt(1 + 2 * q)
        return q * _both_positive(q, width) + q * q / (math.pi * (1 + q) * width)

    def derivative_second_moment(self, q: Float[Array, "..."]) -> Float[Array, "..."]:
        """``J + q (2/(1+q) + 1/(1+2q))/(2 pi sqrt(1+2q))``."""
        width = jnp.sqrt(1 + 2 * q)
        return _both_positive(q, width) + q * (2 / (1 + q) + 1 / (1 + 2 * q)) / (2 * math.pi * width)


def _determinant(q1: Array, q2: Array, c: Array) -> Array:
    """``det(I + Sigma)``, a sum of terms that are not negative."""
    return (1 + q1) + (q2 + q1 * q2 * one_minus_square(c))


def _both_positive(r: Array, width: Array) -> Array:
    """``E[Phi(u) Phi(v)]``."""
    return 0.25 + angle(r, width) / (2 * math.pi)
