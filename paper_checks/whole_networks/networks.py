"""The networks that are measured: four positions, two blocks, softmax matrices with peaks."""

from dataclasses import dataclass
from typing import Any

import numpy as np

import kernelprop as kp

LENGTH, DEPTH, SEED = 4, 2, 3
KERNEL = kp.kernels.exponential(LENGTH, 0.5)


def matrices() -> np.ndarray:
    """Row-stochastic matrices ``(L, T, T)`` with logits of deviation 1.2."""
    weights = np.exp(1.2 * np.random.default_rng(SEED).normal(size=(DEPTH, LENGTH, LENGTH)))
    return weights / weights.sum(-1, keepdims=True)


@dataclass(frozen=True)
class Network:
    """What a network consists of besides its attention and residual weights."""

    words: str
    mlp: Any
    norm: Any

    def model(self, beta: float = 0.6) -> kp.Transformer:
        """The network with skips of weight 0.8 and branches of weight ``beta``."""
        residual = kp.Residual((0.8, beta), (0.8, beta))
        return kp.Transformer(kp.dense(matrices()), mlp=self.mlp, residual=residual, norm=self.norm)


NETWORKS = {
    "pre-rms-gelu": Network("Pre-RMSNorm, GELU", kp.MLP("gelu", 1), kp.Norm("pre", "rms")),
    "post-ln-tanh": Network("Post-LayerNorm, tanh", kp.MLP("tanh", 1), kp.Norm("post", "layer")),
    "relu": Network("no norm, ReLU", kp.MLP("relu", 1, gain_in=np.sqrt(2)), None),
}
