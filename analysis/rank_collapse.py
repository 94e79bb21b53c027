"""Rank collapse against depth: what theory says, and what sampled networks of finite width do."""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

import kernelprop as kp
from kernelprop.layers import residual


@dataclass(frozen=True)
class Spec:
    """Five ways to build the same stack, and the networks that are sampled of each."""

    name: ClassVar[str] = "rank_collapse"
    question: ClassVar[str] = "how fast do the positions come to agree, in theory and in networks of finite width?"

    length: int = 32
    depth: int = 24
    window: int = 8
    beta: float = 0.5
    gamma: float = 0.05
    width: int = 256
    draws: int = 24
    seed: int = 0

    @classmethod
    def quick(cls) -> Self:
        return cls(length=8, depth=4, window=3, width=32, draws=4)

    def points(self) -> tuple[str, ...]:
        return ("mean", "window", "skip", "scaled", "espa")

    def network(self, point: str) -> kp.Transformer:
        """Attention alone over all earlier positions, over a window, with two kinds of skips, and E-SPA."""
        mean = kp.uniform(self.length, causal=True)
        if point == "window":
            return kp.Transformer(kp.sliding_window(self.length, self.window), self.depth)
        if point == "skip":
            return kp.Transformer(mean, self.depth, residual=residual.normalised(self.beta))
        if point == "scaled":
            return kp.Transformer(mean, self.depth, residual=residual.depth_scaled(self.depth))
        if point == "espa":
            return kp.Transformer(kp.espa(self.length, self.depth, self.gamma))
        return kp.Transformer(mean, self.depth)

    def measure(self, point: str) -> dict[str, Any]:
        network, kernel = self.network(point), kp.kernels.identity(self.length)
        theory = kp.propagate(network, kernel, "last")
        sampled = kp.simulate(network, kernel, width=self.width, draws=self.draws, key=self.seed)
        return {
            "rank_residual": theory.rank_residual,
            "mean_correlation": theory.mean_correlation,
            "below_floor": theory.below_floor,
            "sampled_rank_residual": sampled.rank_residual.mean,
            "sampled_rank_residual_stderr": sampled.rank_residual.stderr,
            "sampled_mean_correlation": sampled.mean_correlation.mean,
            "sampled_mean_correlation_stderr": sampled.mean_correlation.stderr,
            "sampled_below_floor": np.asarray(sampled.below_floor),
        }
