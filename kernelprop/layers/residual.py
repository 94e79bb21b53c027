"""Residual branches: ``α x + β f(x)``."""

from typing import Any, Self

import equinox as eqx
import numpy as np
from jaxtyping import Float

from kernelprop import door
from kernelprop.layers import per_layer
from kernelprop.split_kernel import SplitKernel

Weights = tuple[Float[Any, "*layers"], Float[Any, "*layers"]]


class Residual(eqx.Module):
    """The weights of the skip and the branch, ``α`` and ``β``, of the attention and of the MLP sublayer.

    Each is a number or one a layer, ``(L,)``. ``(0, 1)`` is no residual, ``(1, 1)`` the usual one.

    >>> Residual(attention=(1.0, 0.5)).attention
    (array(1.), array(0.5))
    """

    attention: Weights
    mlp: Weights

    def __init__(self, attention: Any = (0.0, 1.0), mlp: Any = (0.0, 1.0)) -> None:
        self.attention = _weights(attention, "attention")
        self.mlp = _weights(mlp, "mlp")

    def per_layer(self, depth: int) -> Self:
        """The same weights with a leading layer axis of ``depth`` each.

        Raises:
            ValueError: where the number of weights differs from the depth.
        """
        return type(self)(
            attention=tuple(per_layer.repeat(w, depth, "residual: attention") for w in self.attention),
            mlp=tuple(per_layer.repeat(w, depth, "residual: mlp") for w in self.mlp),
        )


def forward(weights: Weights | None, skip: SplitKernel, branch: SplitKernel) -> SplitKernel:
    """``Σ ← α² Σ + β² Σ_branch``: the branch's last weight has mean zero, so there is no cross term.

    Without weights there is no residual: the branch alone.
    """
    if weights is None:
        return branch
    alpha, beta = weights
    return skip.scaled(alpha**2).plus(branch.scaled(beta**2))


def plain() -> Residual:
    """``x + f(x)`` on both sublayers."""
    return Residual(attention=(1.0, 1.0), mlp=(1.0, 1.0))


def normalised(beta: Any) -> Residual:
    """``α x + β f(x)`` with ``α² + β² = 1`` on both sublayers (He et al. 2023, section 5).

    >>> normalised(0.6).mlp
    (array(0.8), array(0.6))
    """
    weight = door.real_array(beta, "residual: beta").astype(np.float64)
    if (np.abs(weight) > 1).any():
        raise ValueError(f"residual: beta is {np.max(np.abs(weight)):g}; alpha² + beta² = 1 wants it in [-1, 1]")
    alpha = np.sqrt((1 - weight) * (1 + weight))
    return Residual(attention=(alpha, weight), mlp=(alpha, weight))


def depth_scaled(depth: int, attention: float = 1.0, mlp: float = 1.0) -> Residual:
    """``x + (β̃/√L) f(x)`` with ``β̃`` for the attention and the MLP (Noci et al. 2022, section 3).

    >>> depth_scaled(4).attention
    (array(1.), array(0.5))
    """
    root = np.sqrt(door.count(depth, "residual: depth"))
    return Residual(attention=(1.0, attention / root), mlp=(1.0, mlp / root))


def _weights(pair: Any, name: str) -> Weights:
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        raise ValueError(f"residual: {name} is a pair (alpha, beta); {pair!r} was given")
    alpha, beta = (per_layer.number(weight, f"residual: {name}") for weight in pair)
    return alpha, beta
