"""The attention sublayer ``A X W_V W_O``."""

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from kernelprop.attention.layer import AttentionLayer, over_heads, sandwich
from kernelprop.split_kernel import SplitKernel, common_part, comparable


def forward(layer: AttentionLayer, kernel: SplitKernel) -> SplitKernel:
    """``Σ ← mean_h A_h Σ A_hᵀ``, the common part and the rest each on its own.

    With ``r = A1`` and ``w = Av`` the kernel becomes ``s rrᵀ + rwᵀ + wrᵀ + ARAᵀ``. As long as the rows sum to one
    number, ``r`` and the mean of ``w`` move into the common part and the rounding of the rest is relative to
    itself.
    """
    s = kernel.common
    both = jnp.stack([jnp.ones_like(kernel.cross), kernel.cross])
    acted = over_heads(lambda one, x: one.act(x), layer, both).reshape(-1, *both.shape)
    row_sums, moved = acted[:, 0], acted[:, 1]
    inner = sandwich(layer, kernel.rest)
    diagonal = jnp.diagonal(inner) + jnp.mean((s * row_sums + 2 * moved) * row_sums, axis=0)
    wanted = comparable(diagonal)
    inner_common, inner_cross, edge = common_part(inner, wanted)

    # Means over positions, one a head; zero where no common part is taken off.
    r = jnp.where(wanted, jnp.mean(row_sums, axis=1, keepdims=True), 0.0)
    w = jnp.where(wanted, jnp.mean(moved, axis=1, keepdims=True), 0.0)
    row_sums, moved = row_sums - r, moved - w
    common = inner_common + jnp.mean(s * r**2 + 2 * r * w)
    cross = inner_cross + jnp.mean((s * r + w) * row_sums + r * moved, axis=0)
    outer = _mean_outer(row_sums, s * row_sums + moved) + _mean_outer(moved, row_sums)
    return SplitKernel(common, cross, inner - edge[:, None] - edge[None, :] + outer)


def _mean_outer(left: Float[Array, "heads T"], right: Float[Array, "heads T"]) -> Float[Array, "T T"]:
    """``mean_h x_h y_hᵀ``; of one head elementwise, so that it costs no pass of its own over the kernel."""
    if left.shape[0] == 1:
        return left.T * right
    return jnp.matmul(left.T, right, precision=lax.Precision.HIGHEST) / left.shape[0]
