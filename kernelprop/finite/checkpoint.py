"""A simulation's state on disk, so that it goes on where it stopped without repeating or losing a draw."""

import os
import time
from pathlib import Path
from typing import Any

import numpy as np

from kernelprop import storage
from kernelprop.finite.moments import Moments, merge

# Seconds between two writings, so that small chunks don't spend their time on the disk.
INTERVAL = 5.0


class Progress:
    """The draws that are done: their moments, packed, and, where kept, their single numbers.

    Draws are done in the order of their numbers, so that how many says which.
    """

    def __init__(self, settings: dict[str, Any], path: str | os.PathLike[str] | None) -> None:
        self.settings = settings
        self.path = None if path is None else Path(path)
        self.done = 0
        self.moments: Moments | None = None
        self.parts: list[np.ndarray] = []
        self._written = time.monotonic()
        if self.path is not None and self.path.exists():
            self._resume()

    def add(self, moments: Moments, draws: np.ndarray) -> None:
        """Take in the next draws: their moments, and their numbers ``(draws, kept)``."""
        self.moments = moments if self.moments is None else merge(self.moments, moments)
        self.parts.append(draws)
        self.done = int(self.moments.count)
        if time.monotonic() - self._written > INTERVAL:
            self.write()

    def write(self) -> None:
        """Write the state, whole or not at all; nothing without a path or a draw."""
        self._written = time.monotonic()
        if self.path is None or self.moments is None:
            return
        state = {
            "settings": self.settings,
            "count": float(self.moments.count),
            "mean": self.moments.mean,
            "squares": self.moments.squares,
            "draws": self.draws(),
        }
        storage.save(state, self.path)

    def draws(self) -> np.ndarray:
        """Single draws' numbers, ``(done, kept)``."""
        return np.concatenate(self.parts)

    def _resume(self) -> None:
        state = storage.load(self.path)  # pyright: ignore[reportArgumentType]
        if not isinstance(state, dict) or "settings" not in state:
            raise ValueError(f"checkpoint: {self.path} is no checkpoint of a simulation")
        for name, value in self.settings.items():
            if not storage.equal(state["settings"].get(name), value):
                raise ValueError(f"checkpoint: {self.path} was made with another {name}; remove it to start anew")
        self.moments = Moments(state["count"], state["mean"], state["squares"])
        self.parts = [state["draws"]]
        self.done = int(state["count"])
