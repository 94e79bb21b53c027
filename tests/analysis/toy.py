"""A study of two numbers a point, which notes every point that it computes: for the machinery's tests."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np


@dataclass(frozen=True)
class Toy:
    name: ClassVar[str] = "toy"
    question: ClassVar[str] = "what are the powers of a few numbers?"

    notes: str = ""
    powers: tuple[int, ...] = (0, 1, 2, 3)
    base: float = 2.0
    fails_at: int = -1
    seed: int = 0

    @classmethod
    def quick(cls) -> "Toy":
        return cls(powers=(1,))

    def points(self) -> tuple[str, ...]:
        return tuple(map(str, self.powers))

    def measure(self, point: str) -> dict[str, Any]:
        if self.notes and (Path(self.notes) / "stop").exists() and int(point) == 2:
            raise KeyboardInterrupt
        if int(point) == self.fails_at:
            raise ValueError("position 3 is zero")
        if self.notes:
            with (Path(self.notes) / "computed").open("a", encoding="utf-8") as stream:
                stream.write(f"{point}\n")
        drawn = np.random.default_rng([self.seed, int(point)]).normal(size=3)
        return {"power": self.base ** int(point), "drawn": drawn}
