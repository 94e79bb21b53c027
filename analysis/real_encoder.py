"""A real encoder's attention: what theory says of it alone, and what the whole network does to its tokens."""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

import kernelprop as kp


@dataclass(frozen=True)
class Spec:
    """The shipped example at chosen depths; the attention of a layer is shown as the mean over its heads."""

    name: ClassVar[str] = "real_encoder"
    question: ClassVar[str] = "what does a trained encoder's attention do to a sentence, alone and in its network?"

    layers: tuple[int, ...] = (1, 2, 4, 6)

    @classmethod
    def quick(cls) -> Self:
        return cls(layers=(1,))

    def points(self) -> tuple[str, ...]:
        return ("minilm",)

    def measure(self, point: str) -> dict[str, Any]:
        example = kp.examples.minilm()
        evolution = kp.propagate(kp.Transformer(example.attention), example.kernels[0])
        chosen = np.array(self.layers)
        return {
            "attention": example.attention.mean(1)[chosen - 1].astype(np.float16),
            "theory": _correlations(evolution.kernels[chosen]).astype(np.float16),
            "measured": _correlations(example.kernels[chosen]).astype(np.float16),
            "theory_correlation": evolution.mean_correlation,
            "theory_rank_residual": evolution.rank_residual,
            "measured_correlation": kp.observables.mean_correlation(example.kernels),
            "measured_rank_residual": kp.observables.rank_residual(example.kernels),
        }


def _correlations(kernels: np.ndarray) -> np.ndarray:
    root = np.sqrt(np.diagonal(kernels, axis1=-2, axis2=-1))
    return kernels / (root[:, :, None] * root[:, None, :])
