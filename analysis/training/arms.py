"""The networks that the studies train, each a description and the rates that are tried."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import kernelprop as kp
from kernelprop.layers.residual import depth_scaled, normalised, plain

# E φ² of the activations as they are, for the gain that keeps the variance (references: dual activations).
GELU_GAIN = 0.42522148257030**-0.5
SIGMOID_GAIN = 0.29337903585809**-0.5
EXPANSION, GAMMA, RHO, ETA = 4, 0.5, 0.8, 0.5
# Tokens and trained positions share the input's unit variance.
HALF = 0.5


class Arm(NamedTuple):
    """One network of a comparison.

    Attributes:
        name: short, in records.
        label: for tables and pictures.
        network: length and depth → the description.
        rates: learning rates that are swept.
        positions: whether it has trained positions.
        trainable: what of the description is trained, None for what ``train`` takes by itself.
        optimiser: of the recipe.
    """

    name: str
    label: str
    network: Callable[[int, int], kp.Transformer]
    rates: tuple[float, ...]
    positions: bool = True
    trainable: tuple[str, ...] | None = None
    optimiser: str = "adamw"

    @property
    def embedding_scale(self) -> float:
        """Standard deviation of the embeddings: the input has unit variance, with and without positions."""
        return HALF**0.5 if self.positions else 1.0


SLOW = (2e-4, 5e-4, 1e-3)
USUAL = (1e-3, 3e-3, 1e-2)
LOW = (3e-4, 1e-3, 3e-3)
MOMENTUM = (1e-2, 3e-2, 1e-1)


def usual_attention(mlp: Any, **parts: Any) -> Callable[[int, int], kp.Transformer]:
    """Softmax attention with random queries and keys, and trained positions."""

    def network(length: int, depth: int) -> kp.Transformer:
        made: dict[str, Any] = {name: part(depth) if callable(part) else part for name, part in parts.items()}
        return kp.Transformer(
            kp.random_softmax(length, causal=True), depth, mlp=mlp, positions=HALF * np.eye(length), **made
        )

    return network


def espa(activation: Callable[[int], kp.MLP], **parts: Any) -> Callable[[int, int], kp.Transformer]:
    """E-SPA attention, no positions."""

    def network(length: int, depth: int) -> kp.Transformer:
        return kp.Transformer(kp.espa(length, depth, gamma=GAMMA), mlp=activation(depth), **parts)

    return network


def with_positions(attention: Callable[[int, int], Any]) -> Callable[[int, int], kp.Transformer]:
    """Skipless networks of other attention, TAT leaky ReLU, and trained positions."""

    def network(length: int, depth: int) -> kp.Transformer:
        return kp.Transformer(attention(length, depth), depth, mlp=tat(depth), positions=HALF * np.eye(length))

    return network


def tat(depth: int) -> kp.MLP:
    """Leaky ReLU with ``C_f(0) = 0.5`` over the whole depth."""
    return kp.MLP(kp.tat("leaky_relu", depth, eta=ETA), EXPANSION)


def dks(depth: int) -> kp.MLP:
    """GELU with ``C_f'(1) = 1.5`` over the whole depth."""
    return kp.MLP(kp.dks("gelu", depth), EXPANSION)


def gelu(depth: int = 1) -> kp.MLP:
    """GELU as it is, with the gain that keeps the variance."""
    return kp.MLP("gelu", EXPANSION, gain_out=GELU_GAIN)


def sigmoid(depth: int = 1) -> kp.MLP:
    """Sigmoid as it is, with the gain that keeps the variance."""
    return kp.MLP("sigmoid", EXPANSION, gain_out=SIGMOID_GAIN)


RELU = kp.MLP("relu", EXPANSION, gain_out=2**0.5)
NORM = kp.Norm("pre", epsilon=1e-5)
PRE = kp.Norm("pre", epsilon=1e-5, final=True)
POST = kp.Norm("post", epsilon=1e-5)


def balanced(network: Callable[[int, int], kp.Transformer]) -> Callable[[int, int], kp.Transformer]:
    """The same network at the temperature at which gradients of queries and values have one size."""

    def tempered(length: int, depth: int) -> kp.Transformer:
        model = network(length, depth)
        found = kp.balance_temperature(model, kp.kernels.identity(length))
        return kp.Transformer(
            model.attention,
            depth,
            mlp=model.mlp,
            residual=model.residual,
            norm=model.norm,
            gains=kp.Gains(temperature=found.temperature),
        )

    return tempered


def _from_zero(depth: int) -> kp.Residual:
    return kp.Residual(attention=(1.0, 0.0), mlp=(1.0, 0.0))


ARMS: dict[str, Arm] = {
    arm.name: arm
    for arm in (
        Arm("vanilla_relu", "vanilla, ReLU", usual_attention(RELU), LOW),
        Arm("vanilla_gelu", "vanilla, GELU", usual_attention(gelu()), LOW),
        Arm("vanilla_ln", "vanilla, ReLU, LN", usual_attention(RELU, norm=PRE), LOW),
        Arm("espa", "E-SPA", espa(tat), SLOW, positions=False),
        Arm("espa_trained", "E-SPA, D and B trained", espa(tat), SLOW, False, ("bias", "rescale")),
        Arm("uspa", "U-SPA 0.8", with_positions(lambda T, L: kp.uspa(T, L, RHO)), (1e-4, 2e-4, 5e-4)),
        Arm("skipinit", "Value-SkipInit", with_positions(lambda T, L: kp.mix(kp.uniform(T, causal=True), 1, 0)), SLOW),
        Arm("pre_ln", "Pre-LN", usual_attention(RELU, residual=lambda L: plain(), norm=PRE), USUAL),
        Arm("pre_ln_scaled", "Pre-LN, 1/√L", usual_attention(RELU, residual=depth_scaled, norm=PRE), USUAL),
        Arm(
            "pre_ln_learned",
            "Pre-LN, scales learned from 0",
            usual_attention(RELU, residual=_from_zero, norm=PRE),
            USUAL,
            trainable=("branch",),
        ),
        Arm("espa_ln", "E-SPA, TAT leaky ReLU, LN", espa(tat, norm=NORM), SLOW, positions=False),
        Arm("espa_dks", "E-SPA, DKS GELU", espa(dks), SLOW, positions=False),
        Arm("espa_dks_ln", "E-SPA, DKS GELU, LN", espa(dks, norm=NORM), SLOW, positions=False),
        Arm("espa_gelu", "E-SPA, GELU", espa(gelu), SLOW, positions=False),
        Arm("espa_gelu_ln", "E-SPA, GELU, LN", espa(gelu, norm=NORM), SLOW, positions=False),
        Arm("espa_sigmoid", "E-SPA, sigmoid", espa(sigmoid), SLOW, positions=False),
        Arm("espa_sigmoid_ln", "E-SPA, sigmoid, LN", espa(sigmoid, norm=NORM), SLOW, positions=False),
        *(
            Arm(
                f"espa_skip{round(10 * beta)}{'_ln' if norm else ''}",
                f"E-SPA, skips, β = {beta:g}{', LN' if norm else ''}",
                espa(tat, residual=normalised(beta), norm=norm),
                LOW,
                positions=False,
            )
            for beta in (0.2, 0.5, 0.8)
            for norm in (None, PRE)
        ),
        Arm("espa_sgd", "E-SPA, SGD", espa(tat), MOMENTUM, False, None, "sgd"),
        Arm("espa_sgd_balanced", "E-SPA, SGD, τ balanced", balanced(espa(tat)), MOMENTUM, False, None, "sgd"),
        Arm("espa_balanced", "E-SPA, AdamW, τ balanced", balanced(espa(tat)), SLOW, positions=False),
        Arm(
            "pre_ln_sgd",
            "Pre-LN, SGD",
            usual_attention(RELU, residual=lambda L: plain(), norm=PRE),
            (3e-2, 1e-1, 3e-1),
            optimiser="sgd",
        ),
        Arm("post_ln", "Post-LN", usual_attention(RELU, residual=lambda L: plain(), norm=POST), LOW),
    )
}
