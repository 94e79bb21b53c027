"""What a run has seen so far: grown step by step, kept in a checkpoint, turned into a result at the end."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kernelprop.results import Estimate
from kernelprop.training.metrics import Seen


@dataclass
class History:
    """Losses of all steps, and what was measured at some of them.

    ``points`` has an entry a measurement: the steps done, the validation loss, what the probe showed, squared gradient
    norms and trained scales by name.
    """

    losses: list[float] = field(default_factory=list)
    points: list[dict[str, Any]] = field(default_factory=list)
    seconds: float = 0.0

    def measured(self, done: int) -> bool:
        """Whether this step has been measured already."""
        return any(point["done"] == done for point in self.points)

    def add(self, done: int, validation: Estimate, seen: Seen, norms: dict, scales: dict) -> None:
        """Keep a measurement."""
        self.points.append(
            {
                "done": done,
                "validation": (validation.mean, validation.stderr),
                "token_cosine": seen.token_cosine,
                "kernel": seen.kernel,
                "norms": {name: np.asarray(value) for name, value in norms.items()},
                "scales": {name: np.asarray(value) for name, value in scales.items()},
            }
        )

    def stacked(self, name: str) -> np.ndarray:
        """One entry of all measurements, ``(n, …)``."""
        return np.stack([np.asarray(point[name]) for point in self.points])

    def stacked_by_name(self, name: str) -> dict[str, np.ndarray]:
        """The same for entries that are mappings."""
        return {key: np.stack([point[name][key] for point in self.points]) for key in self.points[0][name]}

    def up_to(self, done: int) -> "History":
        """What was seen in front of the step after ``done`` steps."""
        return History(self.losses[:done], [point for point in self.points if point["done"] <= done], self.seconds)
