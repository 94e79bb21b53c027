"""A simulation's state on disk, so that it goes on where it stopped without repeating or losing a draw."""

import os
import time
from pathlib import Path
from typing import Any

import jax
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
        # One attribute, so that an interrupt finds the moments and the draws of the same chunks.
        self._found: tuple[Moments | None, tuple[np.ndarray, ...]] = (None, ())
        self._written = time.monotonic()
        if self.path is not None:
            if not self.path.parent.is_dir():
                raise ValueError(f"checkpoint: {self.path}: the folder {self.path.parent} does not exist")
            if self.path.exists():
                self._found = self._resume()

    @property
    def moments(self) -> Moments | None:
        """The moments of all draws done, None before the first."""
        return self._found[0]

    @property
    def done(self) -> int:
        """How many draws are done."""
        return 0 if self.moments is None else int(self.moments.count)

    def add(self, moments: Moments, draws: np.ndarray) -> None:
        """Take in the next draws: their moments, and their numbers ``(draws, kept)``."""
        before, parts = self._found
        self._found = (moments if before is None else merge(before, moments), (*parts, draws))
        if time.monotonic() - self._written > INTERVAL:
            self.write()

    def write(self) -> None:
        """Write the state, whole or not at all; nothing without a path or a draw, and one process for all."""
        self._written = time.monotonic()
        if self.path is None or self.moments is None or jax.process_index() != 0:
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
        return np.concatenate(self._found[1])

    def _resume(self) -> tuple[Moments, tuple[np.ndarray, ...]]:
        state = storage.load(self.path)  # pyright: ignore[reportArgumentType]
        if not isinstance(state, dict) or "settings" not in state:
            raise ValueError(f"checkpoint: {self.path} is no checkpoint of a simulation")
        for name, value in self.settings.items():
            if not storage.equal(state["settings"].get(name), value):
                raise ValueError(f"checkpoint: {self.path} was made with another {name}; remove it to start anew")
        return Moments(state["count"], state["mean"], state["squares"]), (state["draws"],)
