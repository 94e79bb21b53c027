"""The attention sublayer ``A X W_V W_O``."""

from typing import NamedTuple

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from kernelprop.attention.layer import AttentionLayer, over_heads, sandwich
from kernelprop.split_kernel import SplitKernel, split


class _Spread(NamedTuple):
    """A vector a head, as its mean over positions and what is left: ``(heads, 1)`` and ``(heads, T)``."""

    mean: Float[Array, "heads 1"]
    rest: Float[Array, "heads T"]


def forward(layer: AttentionLayer, kernel: SplitKernel) -> SplitKernel:
    """``Σ ← mean_h A_h Σ A_hᵀ``, the common and the centred part each on its own.

    With ``r = A1`` and ``w = Av`` the kernel becomes ``s rrᵀ + rwᵀ + wrᵀ + AΣ_cAᵀ``; splitting every term again
    keeps a centred part whose rounding is relative to itself as long as the rows sum to one number.
    """
    row_sums = _spread(layer, jnp.ones_like(kernel.cross))
    moved = _spread(layer, kernel.cross)
    inner = split(sandwich(layer, kernel.centred))
    s = kernel.common
    common = inner.common + jnp.mean(s * row_sums.mean**2 + 2 * row_sums.mean * moved.mean)
    edge = (s * row_sums.mean + moved.mean) * row_sums.rest + row_sums.mean * moved.rest
    cross = inner.cross + jnp.mean(edge, axis=0)
    outer = _mean_outer(row_sums.rest, s * row_sums.rest + moved.rest) + _mean_outer(moved.rest, row_sums.rest)
    return SplitKernel(common, cross, inner.centred + outer)


def _mean_outer(left: Float[Array, "heads T"], right: Float[Array, "heads T"]) -> Float[Array, "T T"]:
    """``mean_h x_h y_hᵀ``; of one head elementwise, so that it costs no pass of its own over the kernel."""
    if left.shape[0] == 1:
        return left.T * right
    return jnp.matmul(left.T, right, precision=lax.Precision.HIGHEST) / left.shape[0]


def _spread(layer: AttentionLayer, vector: Float[Array, "T"]) -> _Spread:
    acted = over_heads(lambda one, x: one.act(x), layer, vector).reshape(-1, vector.shape[0])
    mean = jnp.mean(acted, axis=1, keepdims=True)
    return _Spread(mean, acted - mean)
