"""Diagonal blow-up: signal-preserving attention on inputs that it was not made for."""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

import kernelprop as kp


@dataclass(frozen=True)
class Spec:
    """Equicorrelated inputs ``ρ`` into attention that expects uncorrelated ones, and into attention fitted to them."""

    name: ClassVar[str] = "mismatch"
    question: ClassVar[str] = "how does the diagonal grow under E-SPA and U-SPA when the input is not what they expect?"

    length: int = 64
    depth: int = 48
    gamma: float = 0.005
    rho: float = 0.8
    correlations: tuple[float, ...] = (-0.01, 0.0, 0.05, 0.1, 0.2, 0.4)

    @classmethod
    def quick(cls) -> Self:
        return cls(length=8, depth=4, correlations=(0.0, 0.2))

    def points(self) -> tuple[str, ...]:
        return tuple(f"{kind} {c:g}" for kind in ("espa", "uspa") for c in self.correlations)

    def measure(self, point: str) -> dict[str, Any]:
        kind, correlation = point.split()
        kernel = kp.kernels.equicorrelated(self.length, float(correlation))
        if kind == "espa":
            usual, fit = kp.espa(self.length, self.depth, self.gamma), kp.fit_espa(kernel, self.depth, self.gamma)
        else:
            # The nearest ρ_0 is at least 0.
            usual, fit = kp.uspa(self.length, self.depth, self.rho), kp.fit_uspa(kernel, self.depth, self.rho)
        return {
            "diagonal": _diagonals(usual, kernel),
            "fitted_diagonal": _diagonals(fit.attention, kernel),
            "fitted": np.asarray(fit.value),
        }


def _diagonals(attention: Any, kernel: np.ndarray) -> np.ndarray:
    return kp.propagate(kp.Transformer(attention), kernel, "last").diagonal
