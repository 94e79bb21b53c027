"""The MLP sublayer ``φ(X W₁ + b₁) W₂ + b₂``."""

from functools import singledispatch
from typing import Any, Self

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from kernelprop import door
from kernelprop.activations import Activation, activation
from kernelprop.activations.safe import inverse_root
from kernelprop.layers import per_layer
from kernelprop.layers.pairing import pair, pairing
from kernelprop.layers.score_gradients import Rows
from kernelprop.split_kernel import SplitKernel, made_once, split


class MLP(eqx.Module):
    """``φ(X W₁) W₂``, ``W₁ (d, e d)``, ``W₂ (e d, d)``, entry variances ``gain²/fan_in``.

    Args:
        activation: a name (``"relu"``, ``"gelu"``, …), a shaped activation, or any function on arrays.
        expansion: ``e``; it doesn't enter the kernel.
        gain_in: ``σ₁``, a number or one a layer.
        gain_out: ``σ₂``, likewise.
        bias_in: the variance of the bias in front of the activation (0: no bias), likewise.
        bias_out: the variance of the bias behind ``W₂``, likewise.

    Raises:
        ValueError: for unknown activations and bad numbers.

    >>> MLP("gelu").activation.name
    'gelu'
    """

    activation: Activation
    expansion: float = eqx.field(static=True)
    gain_in: Float[Any, "*layers"]
    gain_out: Float[Any, "*layers"]
    bias_in: Float[Any, "*layers"]
    bias_out: Float[Any, "*layers"]

    def __init__(
        self,
        activation: Any,
        expansion: float = 4,
        gain_in: Any = 1.0,
        gain_out: Any = 1.0,
        *,
        bias_in: Any = 0.0,
        bias_out: Any = 0.0,
    ) -> None:
        self.activation = resolve(activation)
        self.expansion = door.real_number(expansion, "mlp: expansion")
        if not self.expansion > 0:
            raise ValueError(f"mlp: expansion is {self.expansion:g}; it must be positive")
        self.gain_in = per_layer.number(gain_in, "mlp: gain_in")
        self.gain_out = per_layer.number(gain_out, "mlp: gain_out")
        self.bias_in = per_layer.nonnegative(bias_in, "mlp: bias_in")
        self.bias_out = per_layer.nonnegative(bias_out, "mlp: bias_out")

    def per_layer(self, depth: int) -> Self:
        """The same MLP with its numbers spread over ``depth`` layers."""
        return per_layer.spread(self, ("gain_in", "gain_out", "bias_in", "bias_out"), depth, "mlp")


def resolve(fn: Any) -> Activation:
    """The activation that a name or a function stands for."""
    return activation(fn)


@singledispatch
def forward(mlp: Any, kernel: SplitKernel) -> SplitKernel:
    """Take the kernel through an MLP. One kind of MLP, one registration."""
    raise TypeError(f"{type(mlp).__name__} has no map of kernels")


@forward.register
def plain(mlp: MLP, kernel: SplitKernel) -> SplitKernel:
    """``Σ_ij ← σ₂² E[φ(u)φ(v)] + b₂``, ``(u, v)`` Gaussian with covariance ``σ₁² Σ + b₁`` on ``i, j``."""
    q, c = preactivation(kernel, mlp.gain_in, mlp.bias_in)
    return split(mlp.gain_out**2 * mlp.activation.kernel(q, c)).shifted(mlp.bias_out)


@singledispatch
def backward(mlp: Any, kernel: SplitKernel, cotangent: Float[Array, "T T"]) -> tuple[Float[Array, "T T"], Rows]:
    """Take a cotangent kernel back through an MLP, with the gradient norms at width 1 of its trainables.

    ``branch = ⟨G, Σ_branch⟩`` is among the rows: what the residual's weight ``β`` receives.
    """
    raise TypeError(f"{type(mlp).__name__} has no map of cotangent kernels")


@backward.register
def plain_backward(mlp: MLP, kernel: SplitKernel, cotangent: Float[Array, "T T"]) -> tuple[Float[Array, "T T"], Rows]:
    """``G ← σ₁² σ₂² G ∘ K̇``; ``W₁``: ``⟨Σ, σ₂² G ∘ K̇⟩``, ``W₂``: ``e ⟨K, G⟩`` (theory: backward recursion)."""
    q, c = preactivation(kernel, mlp.gain_in, mlp.bias_in)
    inside = mlp.gain_out**2 * cotangent * mlp.activation.kernel_derivative(q, c)
    through, summed = pair(cotangent, mlp.activation.kernel(q, c)), jnp.sum(cotangent)
    return mlp.gain_in**2 * inside, {
        "mlp_in": pairing(inside, kernel),
        "mlp_out": mlp.expansion * through,
        "mlp_bias_in": jnp.sum(inside),
        "mlp_bias_out": summed,
        "branch": mlp.gain_out**2 * through + mlp.bias_out * summed,
    }


def preactivation(
    kernel: SplitKernel, gain: Float[Array, ""], bias: Float[Array, ""]
) -> tuple[Float[Array, "T"], Float[Array, "T T"]]:
    """The variances and correlations in front of the activation; 0 beside a zero position, where it is not used."""
    edge, diagonal = made_once(kernel.edge()[None], (gain**2 * kernel.diagonal() + bias)[None])
    matrix, q = gain**2 * (kernel.rest + (edge.T + edge)) + bias, diagonal[0]
    scale = inverse_root(q)
    # Rounding can leave |c| above 1 by a few ulp.
    return q, jnp.clip(matrix * scale[:, None] * scale[None, :], -1.0, 1.0)
