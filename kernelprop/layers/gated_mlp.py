"""The gated MLP sublayer ``(φ(X W₁) ∘ X W_g) W₂`` (GLU, GEGLU, SwiGLU)."""

from typing import Any, Self

import equinox as eqx
from jaxtyping import Array, Float

from kernelprop import door
from kernelprop.activations import Activation
from kernelprop.layers import per_layer
from kernelprop.layers.mlp import backward, forward, preactivation, resolve
from kernelprop.layers.pairing import pair, pairing
from kernelprop.layers.score_gradients import Rows
from kernelprop.split_kernel import SplitKernel, split


class GatedMLP(eqx.Module):
    """``(φ(X W₁) ∘ X W_g) W₂``, ``W₁, W_g (d, e d)``, ``W₂ (e d, d)``; SwiGLU is ``GatedMLP("silu")``.

    Args:
        activation: of the gated branch, as for `MLP`.
        expansion: ``e``; it doesn't enter the kernel.
        gain_in: ``σ₁``, a number or one a layer.
        gain_gate: ``σ_g``, likewise.
        gain_out: ``σ₂``, likewise.

    >>> GatedMLP("silu").activation.name
    'silu'
    """

    activation: Activation
    expansion: float = eqx.field(static=True)
    gain_in: Float[Any, "*layers"]
    gain_gate: Float[Any, "*layers"]
    gain_out: Float[Any, "*layers"]

    def __init__(
        self, activation: Any, expansion: float = 4, gain_in: Any = 1.0, gain_gate: Any = 1.0, gain_out: Any = 1.0
    ) -> None:
        self.activation = resolve(activation)
        self.expansion = door.real_number(expansion, "mlp: expansion")
        if not self.expansion > 0:
            raise ValueError(f"mlp: expansion is {self.expansion:g}; it must be positive")
        self.gain_in = per_layer.number(gain_in, "mlp: gain_in")
        self.gain_gate = per_layer.number(gain_gate, "mlp: gain_gate")
        self.gain_out = per_layer.number(gain_out, "mlp: gain_out")

    def per_layer(self, depth: int) -> Self:
        """The same MLP with its numbers spread over ``depth`` layers."""
        return per_layer.spread(self, ("gain_in", "gain_gate", "gain_out"), depth, "mlp")


@forward.register
def gated(mlp: GatedMLP, kernel: SplitKernel) -> SplitKernel:
    """``Σ ← σ₂² K ∘ σ_g² Σ``: the two branches' weights are independent, so their kernels multiply."""
    q, c = preactivation(kernel, mlp.gain_in, 0.0 * mlp.gain_in)
    gate = mlp.gain_gate**2 * kernel.join()
    return split(mlp.gain_out**2 * mlp.activation.kernel(q, c) * gate)


@backward.register
def gated_backward(
    mlp: GatedMLP, kernel: SplitKernel, cotangent: Float[Array, "T T"]
) -> tuple[Float[Array, "T T"], Rows]:
    """``G ← σ₂² σ_g² G ∘ (σ₁² Σ ∘ K̇ + K)``: the product rule, the two branches' weights independent.

    ``W₁``: ``⟨Σ, σ₂² σ_g² G ∘ Σ ∘ K̇⟩``, ``W_g``: ``⟨Σ, σ₂² G ∘ K⟩``, ``W₂``: ``e ⟨K ∘ σ_g² Σ, G⟩``.
    """
    q, c = preactivation(kernel, mlp.gain_in, 0.0 * mlp.gain_in)
    out, gate = mlp.gain_out**2 * cotangent, mlp.gain_gate**2
    to_gate = out * mlp.activation.kernel(q, c)
    to_activation = gate * out * kernel.join() * mlp.activation.kernel_derivative(q, c)
    at_gate = pairing(to_gate, kernel)
    return mlp.gain_in**2 * to_activation + gate * to_gate, {
        "mlp_in": pairing(to_activation, kernel),
        "mlp_gate": at_gate,
        "mlp_out": mlp.expansion * gate * pair(cotangent * kernel.join(), mlp.activation.kernel(q, c)),
        "branch": gate * at_gate,
    }
