"""A kernel as its common part plus the rest, so that collapse stays meaningful below rounding.

``Σ = s 11ᵀ + 1vᵀ + v1ᵀ + R``. Rank collapse is ``CΣC → 0``, ``C = I − 11ᵀ/T``, while ``s`` stays; with
``R = CΣC`` kept apart, the first is not lost in the rounding of the second (theory: attention with random
logits; observables). Where the positions' norms are far apart there is no collapse, and taking a common part
off would cost the small ones their digits (a zero token its zero): then ``s = v = 0`` and ``R = Σ``.
"""

from typing import Self

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float

from kernelprop.powers_of_two import exponent, power
from kernelprop.precision import full_product

# Below this ratio of squared norms a common part would eat the digits of the smallest position.
SMALLEST_RATIO = 1 / 16


class SplitKernel(eqx.Module):
    """The common part ``s``, the cross part ``v (T,)`` and the rest ``R (T, T)`` of a kernel."""

    common: Float[Array, ""]
    cross: Float[Array, "T"]
    rest: Float[Array, "T T"]

    def join(self) -> Float[Array, "T T"]:
        """The kernel matrix itself."""
        edge = self.edge()
        return self.rest + (edge[:, None] + edge[None, :])

    def edge(self) -> Float[Array, "T"]:
        """``v + s/2``: what rows and columns have beside the rest."""
        return self.cross + self.common / 2

    def diagonal(self) -> Float[Array, "T"]:
        """``q_i = Σ_ii``."""
        return self.common + 2 * self.cross + diagonal_of(self.rest)

    def scaled(self, factor: Float[Array, ""]) -> Self:
        """``factor · Σ``."""
        return type(self)(factor * self.common, factor * self.cross, factor * self.rest)

    def shifted(self, variance: Float[Array, ""]) -> Self:
        """``Σ + b 11ᵀ``: a bias of variance ``b`` that all positions share."""
        return type(self)(self.common + variance, self.cross, self.rest)

    def plus(self, other: "SplitKernel") -> Self:
        """The sum of two kernels, of independent zero-mean summands."""
        return type(self)(self.common + other.common, self.cross + other.cross, self.rest + other.rest)

    def moments(self) -> dict[str, Float[Array, "*positions"]]:
        """The observables that need no eigenvalues, each accurate however far the kernel has collapsed.

        ``diagonal``; ``mean_correlation``, the mean of ``c_ij`` over ``i ≠ j``; ``rank_residual``,
        ``sqrt(tr(CΣC) / tr Σ)``; ``participation_ratio``, ``(tr Σ)² / ‖Σ‖_F²``. What is undefined is NaN.
        """
        own, diagonal = diagonal_of(self.rest), self.diagonal()
        unit = unit_of(diagonal)
        weight = 1 / jnp.sqrt(unit * diagonal)
        sums = unit * full_product(self.rest, _ones(diagonal))
        return self.moments_of_sums(
            diagonal,
            unit,
            weight,
            own=_sum(unit * own),
            rows=_sum(sums),
            crossed=jnp.vdot(unit * self.cross, sums),
            weighted=jnp.vdot(weight, unit * full_product(self.rest, weight)),
            squares=_sum(full_product((unit * self.rest) ** 2, _ones(diagonal))),
        )

    def moments_of_sums(
        self,
        diagonal: Float[Array, "T"],
        unit: Float[Array, ""],
        weight: Float[Array, "T"],
        *,
        own: Float[Array, ""],
        rows: Float[Array, ""],
        crossed: Float[Array, ""],
        weighted: Float[Array, ""],
        squares: Float[Array, ""],
    ) -> dict[str, Float[Array, "*positions"]]:
        """`moments` from sums over ``R``: ``tr R``, ``1ᵀR1``, ``vᵀR1``, ``uᵀRu`` with ``u = 1/√q``, and ``‖R‖²``.

        All are sums over ``unit · Σ``, which has the same shares: squares of a kernel's own entries leave the range of
        single precision long before the entries do.
        """
        length = self.cross.shape[0]
        common, cross = unit * self.common, unit * self.cross
        trace, total = _sum(unit * diagonal), _sum(weight)
        # C removes the common and the cross part whole, so only R's own mean is left to take off.
        apart = own - rows / length
        squared_norm = (
            (length * common) ** 2 + 2 * length * jnp.vdot(cross, cross) + squares + 2 * (common * rows + 2 * crossed)
        )
        # uᵀΣu sums all correlations, the T ones of the diagonal included.
        correlations = common * total**2 + 2 * total * jnp.vdot(weight, cross) + weighted - length
        pairs = length * (length - 1)
        return {
            "diagonal": diagonal,
            "mean_correlation": correlations / pairs if pairs else jnp.full_like(self.common, jnp.nan),
            # Rounding can push a vanishing share below zero: it lies under the floor, which results flag.
            "rank_residual": jnp.sqrt(jnp.maximum(apart, 0.0) / trace),
            "participation_ratio": trace**2 / squared_norm,
        }


def split(kernel: Float[Array, "T T"]) -> SplitKernel:
    """Split a symmetric kernel matrix.

    The rest comes from differences of rows and columns, never from ``tr Σ − 1ᵀΣ1/T``, so that what it loses is
    the rounding of the entries alone.
    """
    common, cross, edge = common_part(kernel, comparable(diagonal_of(kernel)))
    return SplitKernel(common, cross, kernel - edge[:, None] - edge[None, :])


def congruence(
    kernel: SplitKernel,
    rest: Float[Array, "T T"],
    row_sums: Float[Array, "heads T"],
    moved: Float[Array, "heads T"],
) -> SplitKernel:
    """``mean_h A_h Σ A_hᵀ`` of a split kernel, from ``mean_h A_h R A_hᵀ``, ``r = A_h 1`` and ``w = A_h v``.

    It is ``s rrᵀ + rwᵀ + wrᵀ + ARAᵀ``. As long as the rows sum to one number, ``r`` and the mean of ``w`` move into
    the common part and the rounding of the rest is relative to itself.
    """
    s = kernel.common
    diagonal = diagonal_of(rest) + jnp.mean((s * row_sums + 2 * moved) * row_sums, axis=0)
    wanted = comparable(diagonal)
    inner_common, inner_cross, edge = common_part(rest, wanted)
    common, cross, row_sums, moved = carried(s, row_sums, moved, wanted)
    common, cross = inner_common + common, inner_cross + cross
    edge, row_sums, moved, both = made_once(edge[None], row_sums, moved, s * row_sums + moved)
    outer = _mean_outer(row_sums, both) + _mean_outer(moved, row_sums)
    return SplitKernel(common, cross, rest - edge.T - edge + outer)


def carried(
    common: Float[Array, ""], row_sums: Float[Array, "heads T"], moved: Float[Array, "heads T"], wanted: Bool[Array, ""]
) -> tuple[Float[Array, ""], Float[Array, "T"], Float[Array, "heads T"], Float[Array, "heads T"]]:
    """What of ``s rrᵀ + rwᵀ + wrᵀ`` is common and cross part, and what is left of ``r`` and ``w`` for the rest."""
    # Means over positions, one a head; zero where no common part is taken off.
    r = jnp.where(wanted, jnp.mean(row_sums, axis=1, keepdims=True), 0.0)
    w = jnp.where(wanted, jnp.mean(moved, axis=1, keepdims=True), 0.0)
    row_sums, moved = row_sums - r, moved - w
    cross = jnp.mean((common * r + w) * row_sums + r * moved, axis=0)
    return jnp.mean(common * r**2 + 2 * r * w), cross, row_sums, moved


def comparable(diagonal: Float[Array, "T"]) -> Bool[Array, ""]:
    """Whether the positions' norms are close enough together for a common part to be taken off."""
    # Both in one reduction, half of which each would cost to compile.
    least, most = lax.reduce(
        (diagonal, diagonal),
        (jnp.asarray(jnp.inf, diagonal.dtype), jnp.asarray(-jnp.inf, diagonal.dtype)),
        lambda one, other: (jnp.minimum(one[0], other[0]), jnp.maximum(one[1], other[1])),
        (0,),
    )
    return least >= SMALLEST_RATIO * most


def common_part(
    kernel: Float[Array, "T T"], wanted: Bool[Array, ""]
) -> tuple[Float[Array, ""], Float[Array, "T"], Float[Array, "T"]]:
    """``s``, ``v`` and the edge ``v + s/2`` that centring takes off rows and columns; zeros if not wanted."""
    return part_of_means(full_product(kernel, _ones(kernel[0])) / kernel.shape[-1], wanted)


def part_of_means(
    means: Float[Array, "T"], wanted: Bool[Array, ""]
) -> tuple[Float[Array, ""], Float[Array, "T"], Float[Array, "T"]]:
    """`common_part` from the means of the rows."""
    means = jnp.where(wanted, means, 0.0)
    common = _sum(means) / len(means)
    cross = means - common
    return common, cross, cross + common / 2


def unit_of(diagonal: Float[Array, "T"]) -> Float[Array, ""]:
    """A power of two near ``1 / mean q``: a multiple by it loses no digit."""
    return power(1 - exponent(_sum(diagonal / len(diagonal))), diagonal.dtype)


def diagonal_of(matrix: Float[Array, "T T"]) -> Float[Array, "T"]:
    """``M_ii``, as every ``T + 1``-th of all entries: a gather takes several times as long, to compile as well."""
    length = len(matrix)
    return lax.slice(matrix.reshape(-1), (0,), (length**2,), (length + 1,))


def _mean_outer(left: Float[Array, "heads T"], right: Float[Array, "heads T"]) -> Float[Array, "T T"]:
    """``mean_h x_h y_hᵀ``; of one head elementwise, so that it costs no pass of its own over the kernel."""
    if left.shape[0] == 1:
        return left.T * right
    return jnp.matmul(left.T, right, precision=lax.Precision.HIGHEST) / left.shape[0]


def made_once(*vectors: Float[Array, "heads T"]) -> list[Float[Array, "heads T"]]:
    """The same vectors, behind a product that XLA can't fuse: else it makes them anew at every entry of a matrix.

    At least two: a product with one number it takes for a multiple, and fuses.
    """
    rows = jnp.concatenate(vectors)
    made = full_product(rows.T, jnp.eye(len(rows), dtype=rows.dtype)).T
    return jnp.split(made, np.cumsum([len(v) for v in vectors[:-1]]))


def _sum(vector: Float[Array, "T"]) -> Float[Array, ""]:
    """The sum as a product: a reduction takes several times as long to compile."""
    return full_product(vector, _ones(vector))


def _ones(like: Array) -> Array:
    """Ones that XLA doesn't know to be ones: it would sum by a reduction, several times slower than a product."""
    return lax.optimization_barrier(jnp.ones_like(like))
