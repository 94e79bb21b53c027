"""The gradient of all six weights of a block, layer by layer: theory, and sampled networks."""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

import kernelprop as kp
from kernelprop.layers import residual

WEIGHTS = ("query", "key", "value", "output", "mlp_in", "mlp_out")


@dataclass(frozen=True)
class Spec:
    """Causal softmax attention with random queries and keys and an MLP, with three ways to keep it in bounds."""

    name: ClassVar[str] = "gradient_profile"
    question: ClassVar[str] = "how large is the gradient of each of a block's six weights, layer by layer?"

    length: int = 16
    depth: int = 12
    heads: int = 8
    beta: float = 0.5
    activation: str = "relu"
    width: int = 128
    draws: int = 64
    random_draws: int = 32
    chains: int = 8
    seed: int = 0

    @classmethod
    def quick(cls) -> Self:
        return cls(length=4, depth=2, heads=2, width=16, draws=4, random_draws=4, chains=2)

    def points(self) -> tuple[str, ...]:
        return ("none", "normalised", "pre")

    def network(self, point: str) -> kp.Transformer:
        attention = kp.random_softmax(
            self.length, causal=True, draws=self.random_draws, chains=self.chains, seed=self.seed
        )
        mlp = kp.MLP(self.activation, gain_in=np.sqrt(2.0))
        skips = {
            "none": residual.Residual(attention=(0.0, 1.0), mlp=(0.0, 1.0)),
            "normalised": residual.normalised(self.beta),
            "pre": residual.plain(),
        }[point]
        norm = kp.Norm("pre", "rms") if point == "pre" else None
        return kp.Transformer(attention, self.depth, mlp=mlp, residual=skips, norm=norm)

    def measure(self, point: str) -> dict[str, Any]:
        network, kernel = self.network(point), kp.kernels.identity(self.length)
        norms = kp.gradient_norms(network, kernel)
        sampled = kp.simulate(
            network, kernel, width=self.width, draws=self.draws, key=self.seed, heads=self.heads, gradients=True
        )
        found: dict[str, Any] = {}
        for weight in WEIGHTS:
            measured = getattr(sampled, weight)
            found[weight] = getattr(norms, weight)
            found[f"sampled_{weight}"] = measured.mean / self.width**2
            found[f"sampled_{weight}_stderr"] = measured.stderr / self.width**2
        return found
