"""The rows of a split kernel that one device holds.

The algebra of `kernelprop.split_kernel`, with the same parts: ``Σ = s 11ᵀ + 1vᵀ + v1ᵀ + R``. All devices hold ``s`` and
``v``; of ``R`` each holds its own rows. Everything here runs inside a `jax.shard_map` over the axis ``"rows"``.
"""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from kernelprop.precision import full_product
from kernelprop.row_sharded.collectives import gathered, own, own_diagonal, summed
from kernelprop.split_kernel import SplitKernel, carried, comparable, part_of_means, unit_of


class RowKernel(SplitKernel):
    """A split kernel of whose rest ``R`` this device holds its rows, ``(rows, T)``."""

    def join(self) -> Float[Array, "rows T"]:
        """This device's rows of the kernel matrix itself."""
        edge = self.cross + self.common / 2
        return self.rest + (own(edge, len(self.rest))[:, None] + edge[None, :])

    def diagonal(self) -> Float[Array, "T"]:
        """``q_i = Σ_ii`` of all positions."""
        return self.common + 2 * self.cross + gathered(own_diagonal(self.rest))

    def moments(self) -> dict[str, Float[Array, "*positions"]]:
        """The observables that need no eigenvalues, each device summing over its rows."""
        count = len(self.rest)
        diagonal = self.diagonal()
        unit = unit_of(diagonal)
        weight = 1 / jnp.sqrt(unit * diagonal)
        sums = unit * full_product(self.rest, jnp.stack([jnp.ones_like(diagonal), weight], axis=1))
        return self.moments_of_sums(
            diagonal,
            unit,
            weight,
            own=summed(jnp.sum(unit * own_diagonal(self.rest))),
            rows=summed(jnp.sum(sums[:, 0])),
            crossed=summed(jnp.vdot(own(unit * self.cross, count), sums[:, 0])),
            weighted=summed(jnp.vdot(own(weight, count), sums[:, 1])),
            squares=summed(jnp.sum((unit * self.rest) ** 2)),
        )


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
    """`kernelprop.split_kernel.congruence`, from this device's rows of ``mean_h A_h R A_hᵀ``."""
    s, count = kernel.common, len(rest)
    diagonal = gathered(own_diagonal(rest)) + jnp.mean((s * row_sums + 2 * moved) * row_sums, axis=0)
    wanted = comparable(diagonal)
    inner_common, inner_cross, edge = _common_part(rest, wanted)
    common, cross, row_sums, moved = carried(s, row_sums, moved, wanted)
    outer = _mean_outer(own(row_sums, count), s * row_sums + moved) + _mean_outer(own(moved, count), row_sums)
    rest = rest - own(edge, count)[:, None] - edge[None, :] + outer
    return RowKernel(inner_common + common, inner_cross + cross, rest)


def _common_part(
    rows: Float[Array, "rows T"], wanted: Bool[Array, ""]
) -> tuple[Float[Array, ""], Float[Array, "T"], Float[Array, "T"]]:
    return part_of_means(gathered(full_product(rows, jnp.ones_like(rows[0]))) / rows.shape[-1], wanted)


def _mean_outer(left: Float[Array, "heads rows"], right: Float[Array, "heads T"]) -> Float[Array, "rows T"]:
    return full_product(left.T, right) / len(left)
