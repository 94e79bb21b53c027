"""One number moved at a time: depth, width, length, γ, ρ, τ, residual weights, activations."""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

import kernelprop as kp
from analysis.activation_maps import shaped
from kernelprop.layers import residual


@dataclass(frozen=True)
class Spec:
    """A block without norm, with normalised skips, in the middle, and the values of what is moved away from it."""

    name: ClassVar[str] = "sweeps"
    question: ClassVar[str] = "what do depth, width, length, γ, ρ, τ, residual weights and activations each change?"

    length: int = 32
    depth: int = 12
    beta: float = 0.5
    activation: str = "gelu"
    width: int = 64
    draws: int = 16
    depths: tuple[int, ...] = (2, 4, 8, 16, 32, 64)
    widths: tuple[int, ...] = (32, 64, 128, 256)
    lengths: tuple[int, ...] = (4, 8, 16, 32, 64, 128)
    gammas: tuple[float, ...] = (0.001, 0.005, 0.02, 0.1, 0.5)
    rhos: tuple[float, ...] = (0.05, 0.2, 0.4, 0.6, 0.8, 0.95)
    taus: tuple[float, ...] = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
    betas: tuple[float, ...] = (0.05, 0.1, 0.2, 0.4, 0.7, 1.0)
    activations: tuple[str, ...] = ("linear", "relu", "gelu", "swish", "tanh", "dks(gelu)")
    random_draws: int = 16
    chains: int = 6
    seed: int = 0

    @classmethod
    def quick(cls) -> Self:
        return cls(
            length=4,
            depth=2,
            width=8,
            draws=4,
            depths=(2,),
            widths=(8,),
            lengths=(4,),
            gammas=(0.1,),
            rhos=(0.5,),
            taus=(1.0,),
            betas=(0.5,),
            activations=("relu",),
            random_draws=4,
            chains=2,
        )

    def points(self) -> tuple[str, ...]:
        return ("depth", "width", "length", "gamma", "rho", "tau", "beta", "activation")

    def values(self, point: str) -> tuple[Any, ...]:
        """What the number of this point is set to, in turn."""
        return getattr(self, f"{point}s")

    def measure(self, point: str) -> dict[str, Any]:
        rows = [self._widths(value) if point == "width" else self._theory(point, value) for value in self.values(point)]
        return {name: np.array([row[name] for row in rows]) for name in rows[0]}

    def network(self, **moved: Any) -> kp.Transformer:
        """The network in the middle with some of its numbers moved; γ, ρ and τ bring their own attention."""
        length, depth = moved.get("length", self.length), moved.get("depth", self.depth)
        skips = residual.normalised(moved.get("beta", self.beta))
        mlp = kp.MLP(shaped(moved.get("activation", self.activation), depth), gain_in=1.0)
        return kp.Transformer(self._attention(length, depth, moved), depth, mlp=mlp, residual=skips)

    def _attention(self, length: int, depth: int, moved: dict[str, Any]) -> Any:
        if "gamma" in moved:
            return kp.espa(length, depth, moved["gamma"])
        if "rho" in moved:
            return kp.uspa(length, depth, moved["rho"])
        if "tau" in moved:
            settings: dict[str, Any] = {"draws": self.random_draws, "chains": self.chains, "seed": self.seed}
            return kp.random_softmax(length, tau=moved["tau"], causal=True, **settings)
        return kp.uniform(length, causal=True)

    def _theory(self, point: str, value: Any) -> dict[str, float]:
        network = self.network(**{point: value})
        evolution = kp.propagate(network, kp.kernels.identity(network.length), "last")
        errors = (evolution.mean_correlation_stderr, evolution.rank_residual_stderr)
        return _row((evolution.mean_correlation, evolution.rank_residual), errors)

    def _widths(self, width: int) -> dict[str, float]:
        found = kp.simulate(
            self.network(), kp.kernels.identity(self.length), width=width, draws=self.draws, key=self.seed
        )
        means = (found.mean_correlation.mean, found.rank_residual.mean)
        return _row(means, (found.mean_correlation.stderr, found.rank_residual.stderr))


def _row(means: tuple[Any, ...], errors: tuple[Any, ...]) -> dict[str, float]:
    names = ("mean_correlation", "rank_residual")
    last = [0.0 if error is None else float(error[-1]) for error in errors]
    found = {name: float(mean[-1]) for name, mean in zip(names, means, strict=True)}
    return found | {f"{name}_stderr": error for name, error in zip(names, last, strict=True)}
