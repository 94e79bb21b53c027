"""Normalisation of each position: LayerNorm and RMSNorm."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from kernelprop import door
from kernelprop.split_kernel import SplitKernel, congruence


class Norm(eqx.Module):
    """Where the network normalises, and how.

    ``"pre"``: in front of every branch, ``α x + β f(N(x))``; ``"post"``: behind every residual sum,
    ``N(α x + β f(x))``. At infinite width LayerNorm and RMSNorm are one map of kernels, since the features of a
    position have mean zero; a finite network tells them apart.

    Args:
        place: ``"pre"`` or ``"post"``.
        kind: ``"layer"`` or ``"rms"``.
        epsilon: what is added to the variance under the root.
        final: whether the last block's output is normalised once more (usual with ``"pre"``).

    >>> Norm("pre", "rms").kind
    'rms'
    """

    place: str = eqx.field(static=True)
    kind: str = eqx.field(static=True)
    epsilon: float = eqx.field(static=True)
    final: bool = eqx.field(static=True)

    def __init__(self, place: str, kind: str = "layer", epsilon: float = 0.0, final: bool = False) -> None:
        if place not in ("pre", "post"):
            raise ValueError(f"norm: place {place!r} is unknown; use 'pre' or 'post'")
        if kind not in ("layer", "rms"):
            raise ValueError(f"norm: kind {kind!r} is unknown; use 'layer' or 'rms'")
        self.epsilon = door.real_number(epsilon, "norm: epsilon")
        if self.epsilon < 0:
            raise ValueError(f"norm: epsilon is {self.epsilon:g}; it can't be negative")
        self.place, self.kind = place, kind
        self.final = bool(final)


def forward(norm: Norm, kernel: SplitKernel) -> SplitKernel:
    """``Σ_ij ← Σ_ij / sqrt((q_i + ε)(q_j + ε))``; NaN for a zero position with ``ε = 0``.

    It is the congruence of a diagonal matrix, so that a collapsing kernel keeps its digits.
    """
    scale = inverse_scale(norm, kernel.diagonal())
    rest = kernel.rest * (scale[:, None] * scale[None, :])
    return congruence(kernel, rest, scale[None], (scale * kernel.cross)[None])


def inverse_scale(norm: Norm, diagonal: Float[Array, "T"]) -> Float[Array, "T"]:
    """``1 / sqrt(q_i + ε)``."""
    return 1 / jnp.sqrt(diagonal + jnp.asarray(norm.epsilon, diagonal.dtype))


def backward(norm: Norm, diagonal: Float[Array, "T"], cotangent: Float[Array, "T T"]) -> Float[Array, "T T"]:
    """``G_ij ← G_ij / sqrt((q_i + ε)(q_j + ε))``, ``q`` the diagonal that the norm saw (theory: backward recursion).

    What the norm takes off along the position's own direction is one direction of ``d``: nothing, at infinite width.
    """
    scale = inverse_scale(norm, diagonal)
    return cotangent * (scale[:, None] * scale[None, :])
