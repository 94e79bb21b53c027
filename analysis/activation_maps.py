"""Activation C maps, plain and shaped: what correlation becomes in one nonlinear layer, and in all of them."""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

import kernelprop as kp

SHAPED = ("tat(leaky_relu)", "tat(gelu)", "dks(gelu)", "dks(tanh)")


@dataclass(frozen=True)
class Spec:
    """Plain activations by name, and shaped ones for this depth."""

    name: ClassVar[str] = "activation_maps"
    question: ClassVar[str] = "what do plain and shaped activations make of a correlation, in one layer and in all?"

    depth: int = 36
    plain: tuple[str, ...] = ("relu", "gelu", "tanh", "erf")
    shaped: tuple[str, ...] = SHAPED
    values: int = 121

    @classmethod
    def quick(cls) -> Self:
        return cls(plain=("relu",), shaped=("tat(leaky_relu)",), values=5)

    def points(self) -> tuple[str, ...]:
        return (*self.plain, *self.shaped)

    def measure(self, point: str) -> dict[str, Any]:
        """``C(c) = K(1, 1, c)/K(1, 1, 1)``, once, and iterated with unit diagonals."""
        dual = kp.dual(shaped(point, self.depth))
        one = np.ones(self.values)
        scale = float(dual(1.0, 1.0, 1.0))
        correlations = np.linspace(-1.0, 1.0, self.values)
        found = [correlations]
        for _ in range(self.depth):
            found.append(np.clip(np.asarray(dual(one, one, found[-1])) / scale, -1.0, 1.0))
        return {"correlations": correlations, "once": found[1], "through": found[-1]}


def shaped(name: str, depth: int) -> Any:
    """``dks(gelu)`` and ``tat(leaky_relu)`` as activations shaped for a depth; other names as they are."""
    method, bracket, inner = name.rstrip(")").partition("(")
    if not bracket:
        return name
    return {"dks": kp.dks, "tat": kp.tat}[method](inner, depth)
