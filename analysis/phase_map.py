"""Depth × width phase map of collapse: where sampled networks of finite width have lost the rank of their input.

Read off the participation ratio, the number of directions that the positions take up: a narrow network sends its
positions to one line, on either side of 0, which the rank residual doesn't see. At infinite width the depth alone
decides; each layer of a narrow one moves the kernel by a random amount of order ``1/√d``, and what is lost doesn't
come back.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

import kernelprop as kp
from kernelprop.layers import residual

KINDS = ("collapsing", "preserving")


@dataclass(frozen=True)
class Spec:
    """Widths, one run through the whole depth at each, and two networks.

    ``collapsing`` is the causal mean with ReLU MLPs and normalised skips; ``preserving`` is U-SPA with linear MLPs and
    no skips, which at infinite width ends at the kernel that it prescribes.
    """

    name: ClassVar[str] = "phase_map"
    question: ClassVar[str] = "at which depth has a network of a given width collapsed?"

    length: int = 16
    depth: int = 96
    widths: tuple[int, ...] = (16, 24, 32, 48, 64, 96, 128, 192)
    beta: float = 0.2
    rho: float = 0.3
    draws: int = 24
    seed: int = 0

    @classmethod
    def quick(cls) -> Self:
        return cls(length=4, depth=4, widths=(8, 16), draws=4)

    def points(self) -> tuple[str, ...]:
        return tuple(f"{kind} {width}" for kind in KINDS for width in (*self.widths, "infinite"))

    def network(self, kind: str) -> kp.Transformer:
        if kind == "preserving":
            return kp.Transformer(kp.uspa(self.length, self.depth, self.rho), mlp=kp.MLP("linear"))
        mlp = kp.MLP("relu", gain_in=np.sqrt(2.0))
        attention = kp.uniform(self.length, causal=True)
        return kp.Transformer(attention, self.depth, mlp=mlp, residual=residual.normalised(self.beta))

    def measure(self, point: str) -> dict[str, Any]:
        kind, width = point.split()
        network, kernel = self.network(kind), kp.kernels.identity(self.length)
        if width == "infinite":
            evolution = kp.propagate(network, kernel, "last")
            return {name: getattr(evolution, name) for name in ("participation_ratio", "rank_residual")}
        found = kp.simulate(network, kernel, width=int(width), draws=self.draws, key=self.seed)
        return {
            "participation_ratio": found.participation_ratio.mean,
            "participation_ratio_stderr": found.participation_ratio.stderr,
            "rank_residual": found.rank_residual.mean,
            "rank_residual_stderr": found.rank_residual.stderr,
        }
