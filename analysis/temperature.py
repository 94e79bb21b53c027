"""The temperature ``τ`` of the softmax: it balances query and value gradients, and moves a random softmax's kernel."""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

import kernelprop as kp
from kernelprop.layers import residual

NETWORKS = ("uniform", "espa", "window")


@dataclass(frozen=True)
class Spec:
    """Temperatures, networks whose queries start at zero, and random softmax attention whose logits they scale."""

    name: ClassVar[str] = "temperature"
    question: ClassVar[str] = "at which temperature do queries and values learn alike, and what does it do to rank?"

    length: int = 16
    depth: int = 6
    taus: tuple[float, ...] = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
    width: int = 64
    draws: int = 32
    random_draws: int = 16
    chains: int = 8
    seed: int = 0

    @classmethod
    def quick(cls) -> Self:
        return cls(length=4, depth=2, taus=(1.0, 4.0), width=16, draws=4, random_draws=4, chains=2)

    def points(self) -> tuple[str, ...]:
        return (*NETWORKS, *(f"random {tau:g}" for tau in self.taus))

    def network(self, point: str, tau: float) -> kp.Transformer:
        attention = {
            "uniform": lambda: kp.uniform(self.length, causal=True),
            "espa": lambda: kp.espa(self.length, self.depth, 0.05),
            "window": lambda: kp.sliding_window(self.length, 4),
        }[point]()
        skips = residual.normalised(0.5)
        return kp.Transformer(attention, self.depth, residual=skips, gains=kp.Gains(temperature=tau))

    def measure(self, point: str) -> dict[str, Any]:
        kernel = kp.kernels.identity(self.length)
        if point not in NETWORKS:
            return self._random(float(point.split()[1]), kernel)
        theory, sampled, stderr = [], [], []
        for tau in self.taus:
            network = self.network(point, tau)
            norms = kp.gradient_norms(network, kernel)
            theory.append(np.sqrt(np.asarray(norms.query).sum() / np.asarray(norms.value).sum()))
            found = kp.simulate(
                network, kernel, width=self.width, draws=self.draws, key=self.seed, gradients=True, samples=True
            )
            drawn = found.samples or {}
            query, value = (drawn[name].sum(-1) for name in ("query", "value"))
            ratio, error = _root_ratio(query, value)
            sampled.append(ratio)
            stderr.append(error)
        balance = kp.balance_temperature(self.network(point, 1.0), kernel)
        return {
            "theory": np.array(theory),
            "sampled": np.array(sampled),
            "sampled_stderr": np.array(stderr),
            "balance": np.asarray(balance.temperature),
        }

    def _random(self, tau: float, kernel: np.ndarray) -> dict[str, Any]:
        attention = kp.random_softmax(
            self.length, tau=tau, causal=True, draws=self.random_draws, chains=self.chains, seed=self.seed
        )
        evolution = kp.propagate(kp.Transformer(attention, self.depth), kernel, "last")
        return {
            "rank_residual": evolution.rank_residual,
            "rank_residual_stderr": np.asarray(evolution.rank_residual_stderr),
        }


def _root_ratio(top: np.ndarray, bottom: np.ndarray) -> tuple[float, float]:
    """``sqrt(mean top / mean bottom)`` and its standard error over paired draws, by the jackknife."""
    count = len(top)
    left_out = np.sqrt((top.sum() - top) / (bottom.sum() - bottom))
    error = np.sqrt((count - 1) / count * np.sum((left_out - left_out.mean()) ** 2))
    return float(np.sqrt(top.sum() / bottom.sum())), float(error)
