"""Correlation against depth in the setting of Noci et al. 2022: skips, depth scaling, Pre-LN, Post-LN.

Uniform attention (logits scaled by ``1/d_k``), from orthogonal inputs. Measured in sampled networks too.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

import kernelprop as kp
from kernelprop.layers import residual
from kernelprop.predictions import noci2022


@dataclass(frozen=True)
class Spec:
    """Networks by the place of their norm, with branches of weight 1 and of weight ``1/√L``."""

    name: ClassVar[str] = "noci2022_correlation"
    question: ClassVar[str] = "how does correlation grow with depth, with and without depth scaling, Pre-LN, Post-LN?"

    length: int = 32
    depth: int = 64
    activation: str = "linear"
    width: int = 128
    draws: int = 16
    seed: int = 0

    @classmethod
    def quick(cls) -> Self:
        return cls(length=8, depth=4, width=16, draws=4)

    def points(self) -> tuple[str, ...]:
        return tuple(f"{place} {scaling}" for place in ("none", "pre", "post") for scaling in ("plain", "scaled"))

    def network(self, point: str) -> kp.Transformer:
        place, scaling = point.split()
        skips = residual.depth_scaled(self.depth) if scaling == "scaled" else residual.plain()
        norm = None if place == "none" else place
        attention = kp.uniform(self.length)
        return kp.Transformer(attention, self.depth, mlp=kp.MLP(self.activation), residual=skips, norm=norm)

    def measure(self, point: str) -> dict[str, Any]:
        network, kernel = self.network(point), kp.kernels.identity(self.length)
        theory = kp.propagate(network, kernel, "last")
        sampled = kp.simulate(network, kernel, width=self.width, draws=self.draws, key=self.seed)
        return {
            "mean_correlation": theory.mean_correlation,
            "sampled": sampled.mean_correlation.mean,
            "sampled_stderr": sampled.mean_correlation.stderr,
            "limit": np.asarray(noci2022.limiting_cosine(self.length, 1.0)),
        }
