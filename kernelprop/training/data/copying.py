"""The copy-back task: say again what stood some positions ago."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelprop import door
from kernelprop.training.data.source import Batch, Source, Split


@dataclass(frozen=True)
class CopyBack(Source):
    """Independent uniform symbols; position ``i ≥ lag`` is to say the symbol of position ``i − lag``.

    No symbol tells of another, so a network without positions, or with one token for all, can't do better than
    ``log V``; one that finds the position reaches 0.
    """

    symbols: int
    lag: int

    @property
    def name(self) -> str:
        """What it is, in a line."""
        return f"copy the symbol of {self.lag} positions ago, {self.symbols} symbols"

    @property
    def vocabulary(self) -> int:
        """The number of symbols."""
        return self.symbols

    def check(self, length: int) -> None:
        """Refuse a length without a position that can look back so far.

        Raises:
            ValueError: for ``length ≤ lag``.
        """
        if length <= self.lag:
            raise ValueError(f"copy: a lag of {self.lag} does not fit {length} positions; it must be below them")

    def levels(self, length: int) -> Mapping[str, float]:
        """``log V`` for who knows nothing, and 0."""
        return {"uniform": math.log(self.symbols), "best": 0.0}

    def batch(self, length: int, size: int, generator: np.random.Generator, split: Split) -> Batch:
        """Sequences; what the first ``lag`` positions say doesn't count."""
        tokens = generator.integers(self.symbols, size=(size, length), dtype=np.int32)
        counted = np.broadcast_to(np.arange(length) >= self.lag, tokens.shape)
        return Batch(tokens, np.where(counted, np.roll(tokens, self.lag, axis=1), 0), counted)

    def settings(self) -> dict[str, Any]:
        """Symbols and lag."""
        return {"kind": "copy", "symbols": self.symbols, "lag": self.lag}


def copy_back(vocabulary: int = 16, lag: int = 4) -> CopyBack:
    """The copy-back task.

    >>> batch = copy_back(8, lag=2).batch(5, 1, np.random.default_rng(0), "training")
    >>> bool((batch.targets[0, 2:] == batch.tokens[0, :3]).all()), batch.counted[0].tolist()
    (True, [False, False, True, True, True])
    """
    return CopyBack(door.count(vocabulary, "vocabulary", least=2), door.count(lag, "lag", least=0))
