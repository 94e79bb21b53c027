"""The rows of a split kernel that one device holds.

The algebra of `kernelprop.split_kernel`, with the same parts: ``Σ = s 11ᵀ + 1vᵀ + v1ᵀ + R``. All devices hold ``s`` and
``v``; of ``R`` each holds its own rows. Everything here runs inside a `jax.shard_map` over the axis ``"rows"``.
"""

from typing import Self

import equinox as eqx
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float

from kernelprop.row_sharded.collectives import gathered, own, own_diagonal, summed
from kernelprop.split_kernel import comparable


class RowKernel(eqx.Module):
    """The common part ``s``, the cross part ``v (T,)``, and this device's rows of the rest ``R``."""

    common: Float[Array, ""]
    cross: Float[Array, "T"]
    rest: Float[Array, "rows T"]

    def join(self) -> Float[Array, "rows T"]:
        """This device's rows of the kernel matrix itself."""
        edge = self.cross + self.common / 2
        return self.rest + (own(edge, len(self.rest))[:, None] + edge[None, :])

    def diagonal(self) -> Float[Array, "T"]:
        """``q_i = Σ_ii`` of all positions."""
        return self.common + 2 * self.cross + gathered(own_diagonal(self.rest))

    def scaled(self, factor: Float[Array, ""]) -> Self:
        """``factor · Σ``."""
        return type(self)(factor * self.common, factor * self.cross, factor * self.rest)

    def shifted(self, variance: Float[Array, ""]) -> Self:
        """``Σ + b 11ᵀ``: a bias of variance ``b`` that all positions share."""
        return type(self)(self.common + variance, self.cross, self.rest)

    def plus(self, other: "RowKernel") -> Self:
        """The sum of two kernels, of independent zero-mean summands."""
        return type(self)(self.common + other.common, self.cross + other.cross, self.rest + other.rest)

    def moments(self) -> dict[str, Float[Array, "*positions"]]:
        """The observables of `SplitKernel.moments`, each device summing over its rows."""
        rows, length = self.rest.shape
        diagonal = self.diagonal()
        weight = 1 / jnp.sqrt(diagonal)
        sums = _product(self.rest, jnp.stack([jnp.ones_like(diagonal), weight], axis=1))
        total_of_rows = summed(jnp.sum(sums[:, 0]))
        apart = summed(jnp.sum(own_diagonal(self.rest))) - total_of_rows / length
        crossed = summed(jnp.vdot(own(self.cross, rows), sums[:, 0]))
        squared_norm = (
            (length * self.common) ** 2
            + 2 * length * jnp.vdot(self.cross, self.cross)
            + summed(jnp.sum(self.rest * self.rest))
            + 2 * (self.common * total_of_rows + 2 * crossed)
        )
        total = jnp.sum(weight)
        correlations = (
            self.common * total**2
            + 2 * total * jnp.vdot(weight, self.cross)
            + summed(jnp.vdot(own(weight, rows), sums[:, 1]))
            - length
        )
        pairs, trace = length * (length - 1), jnp.sum(diagonal)
        return {
            "diagonal": diagonal,
            "mean_correlation": correlations / pairs if pairs else jnp.full_like(self.common, jnp.nan),
            "rank_residual": jnp.sqrt(jnp.maximum(apart, 0.0) / trace),
            "participation_ratio": trace**2 / squared_norm,
        }


def split_rows(kernel: Float[Array, "rows T"]) -> RowKernel:
    """Split a symmetric kernel of which this device has its rows."""
    common, cross, edge = _common_part(kernel, comparable(gathered(own_diagonal(kernel))))
    return RowKernel(common, cross, kernel - own(edge, len(kernel))[:, None] - edge[None, :])


def row_congruence(
    kernel: RowKernel,
    rest: Float[Array, "rows T"],
    row_sums: Float[Array, "heads T"],
    moved: Float[Array, "heads T"],
) -> RowKernel:
    """``mean_h A_h Σ A_hᵀ`` from the rows of ``mean_h A_h R A_hᵀ``, ``r = A_h 1`` and ``w = A_h v``.

    As `kernelprop.split_kernel.congruence`, row by row.
    """
    s = kernel.common
    diagonal = gathered(own_diagonal(rest)) + jnp.mean((s * row_sums + 2 * moved) * row_sums, axis=0)
    wanted = comparable(diagonal)
    inner_common, inner_cross, edge = _common_part(rest, wanted)
    r = jnp.where(wanted, jnp.mean(row_sums, axis=1, keepdims=True), 0.0)
    w = jnp.where(wanted, jnp.mean(moved, axis=1, keepdims=True), 0.0)
    row_sums, moved = row_sums - r, moved - w
    common = inner_common + jnp.mean(s * r**2 + 2 * r * w)
    cross = inner_cross + jnp.mean((s * r + w) * row_sums + r * moved, axis=0)
    count = len(rest)
    outer = _mean_outer(own(row_sums, count), s * row_sums + moved) + _mean_outer(own(moved, count), row_sums)
    return RowKernel(common, cross, rest - own(edge, count)[:, None] - edge[None, :] + outer)


def _common_part(
    rows: Float[Array, "rows T"], wanted: Bool[Array, ""]
) -> tuple[Float[Array, ""], Float[Array, "T"], Float[Array, "T"]]:
    means = gathered(_product(rows, jnp.ones_like(rows[0]))) / rows.shape[-1]
    means = jnp.where(wanted, means, 0.0)
    common = jnp.mean(means)
    cross = means - common
    return common, cross, cross + common / 2


def _mean_outer(left: Float[Array, "heads rows"], right: Float[Array, "heads T"]) -> Float[Array, "rows T"]:
    return _product(left.T, right) / len(left)


def _product(left: Array, right: Array) -> Array:
    return jnp.matmul(left, right, precision=lax.Precision.HIGHEST)
