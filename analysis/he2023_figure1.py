"""He et al. 2023, Figure 1: what becomes of positions in deep attention-only networks without skips.

The usual initialisation, softmax attention with random queries and keys, against U-SPA and E-SPA, from uncorrelated
positions: the kernel at chosen depths, its mean correlation and its rank residual at all of them.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

import kernelprop as kp

NAME = "he2023_figure1"


@dataclass(frozen=True)
class Spec:
    """Sizes, ends of the schedules, and how often random attention is drawn."""

    name: ClassVar[str] = NAME
    question: ClassVar[str] = "what becomes of positions in deep attention without skips, plain, U-SPA and E-SPA?"

    length: int = 100
    depth: int = 100
    shown: tuple[int, ...] = (0, 1, 10, 50, 100)
    gamma: float = 0.005
    rho: float = 0.8
    draws: int = 64
    chains: int = 8
    seed: int = 0

    @classmethod
    def quick(cls) -> Self:
        return cls(length=8, depth=6, shown=(0, 1, 6), draws=4, chains=2)

    def points(self) -> tuple[str, ...]:
        return ("vanilla", "uspa", "espa")

    def measure(self, point: str) -> dict[str, Any]:
        network = kp.Transformer(self._attention(point), self.depth)
        evolution = kp.propagate(network, kp.kernels.identity(self.length), list(self.shown))
        # The kernels in float32, which is what a picture can show, and the numbers of every depth in full.
        found = {
            "kernels": evolution.kernels.astype(np.float32),
            "mean_correlation": evolution.mean_correlation,
            "rank_residual": evolution.rank_residual,
            "below_floor": evolution.below_floor,
        }
        if evolution.rank_residual_stderr is not None:
            found["rank_residual_stderr"] = evolution.rank_residual_stderr
            found["mean_correlation_stderr"] = np.asarray(evolution.mean_correlation_stderr)
        return found

    def _attention(self, point: str) -> Any:
        if point == "vanilla":
            return kp.random_softmax(self.length, causal=True, draws=self.draws, chains=self.chains, seed=self.seed)
        if point == "uspa":
            return kp.uspa(self.length, self.depth, self.rho)
        return kp.espa(self.length, self.depth, self.gamma)
