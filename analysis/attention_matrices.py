"""The matrices of signal-preserving attention, and their softmax form ``D softmax(B + mask)``."""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

import kernelprop as kp


@dataclass(frozen=True)
class Spec:
    """Two stacks at chosen layers, counted from 1."""

    name: ClassVar[str] = "attention_matrices"
    question: ClassVar[str] = "what do E-SPA and U-SPA attend to, and what are their rescale D and bias B?"

    length: int = 32
    depth: int = 12
    gamma: float = 0.05
    rho: float = 0.8
    layers: tuple[int, ...] = (1, 6, 12)

    @classmethod
    def quick(cls) -> Self:
        return cls(length=8, depth=4, layers=(1, 4))

    def points(self) -> tuple[str, ...]:
        return ("espa", "uspa")

    def measure(self, point: str) -> dict[str, Any]:
        if point == "espa":
            stack = kp.espa(self.length, self.depth, self.gamma)
        else:
            stack = kp.uspa(self.length, self.depth, self.rho)
        form = stack.softmax_form()
        chosen = np.array(self.layers) - 1
        return {
            "matrices": np.stack([stack[int(layer)].as_matrix() for layer in chosen]).astype(np.float32),
            "rescale": np.asarray(form.rescale),
            "bias": np.asarray(form.bias)[chosen].astype(np.float32),
            "mask": np.asarray(form.mask),
        }
