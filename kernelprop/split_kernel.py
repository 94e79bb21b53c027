"""A kernel as its common part plus its centred part, so that collapse stays meaningful below rounding.

``Σ = s 11ᵀ + 1vᵀ + v1ᵀ + Σ_c`` with ``Σ_c = CΣC``, ``C = I − 11ᵀ/T``, and ``v`` of mean zero. Rank collapse is
``Σ_c → 0`` while ``s`` stays: kept apart, the first is not lost in the rounding of the second (theory: attention
with random logits; observables). The three parts are orthogonal in the Frobenius product.
"""

from typing import Self

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float


class SplitKernel(eqx.Module):
    """The common part ``s``, the cross part ``v (T,)`` and the centred part ``Σ_c (T, T)`` of a kernel."""

    common: Float[Array, ""]
    cross: Float[Array, "T"]
    centred: Float[Array, "T T"]

    def join(self) -> Float[Array, "T T"]:
        """The kernel matrix itself."""
        edge = self.cross + self.common / 2
        return self.centred + (edge[:, None] + edge[None, :])

    def diagonal(self) -> Float[Array, "T"]:
        """``q_i = Σ_ii``."""
        return self.common + 2 * self.cross + jnp.diagonal(self.centred)

    def trace(self) -> Float[Array, ""]:
        """``tr Σ``."""
        return self.cross.shape[0] * self.common + jnp.trace(self.centred)

    def scaled(self, factor: Float[Array, ""]) -> Self:
        """``factor · Σ``."""
        return type(self)(factor * self.common, factor * self.cross, factor * self.centred)

    def plus(self, other: "SplitKernel") -> Self:
        """The sum of two kernels, of independent zero-mean summands."""
        return type(self)(self.common + other.common, self.cross + other.cross, self.centred + other.centred)

    def rank_residual(self) -> Float[Array, ""]:
        """``sqrt(tr(CΣC) / tr Σ)``; NaN for a zero kernel.

        A trace that rounding has pushed below zero is zero: it lies under the floor, which results flag.
        """
        return jnp.sqrt(jnp.maximum(jnp.trace(self.centred), 0.0) / self.trace())

    def participation_ratio(self) -> Float[Array, ""]:
        """``(tr Σ)² / ‖Σ‖_F²``; NaN for a zero kernel."""
        length = self.cross.shape[0]
        squared_norm = (
            (length * self.common) ** 2 + 2 * length * jnp.sum(self.cross**2) + jnp.sum(self.centred * self.centred)
        )
        return self.trace() ** 2 / squared_norm

    def mean_correlation(self) -> Float[Array, ""]:
        """The mean of ``c_ij`` over ``i ≠ j``; NaN where a token is zero or there is only one."""
        length = self.cross.shape[0]
        weight = 1 / jnp.sqrt(self.diagonal())
        total = jnp.sum(weight)
        # uᵀΣu with u = 1/√q sums all correlations, the T ones of the diagonal included.
        summed = self.common * total**2 + 2 * total * jnp.sum(weight * self.cross)
        summed += jnp.sum(weight * jnp.sum(self.centred * weight[None, :], axis=1))
        return (summed - length) / (length * (length - 1)) if length > 1 else jnp.full_like(total, jnp.nan)


def split(kernel: Float[Array, "T T"]) -> SplitKernel:
    """Split a symmetric kernel matrix into its three parts.

    The centred part comes from differences of rows and columns, never from ``tr Σ − 1ᵀΣ1/T``, so that what it
    loses is the rounding of the entries alone.
    """
    means = jnp.mean(kernel, axis=1)
    common = jnp.mean(means)
    cross = means - common
    return SplitKernel(common, cross, kernel - means[:, None] - cross[None, :])
