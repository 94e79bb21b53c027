"""What a source of training data is."""

import abc
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import numpy as np
from jaxtyping import Bool, Int

Split = Literal["training", "validation"]
SPLITS = ("training", "validation")


class Batch(NamedTuple):
    """Sequences of token ids, what each position is to predict, and which positions count in the loss."""

    tokens: Int[Any, "batch T"]
    targets: Int[Any, "batch T"]
    counted: Bool[Any, "batch T"]


class Source(abc.ABC):
    """A stream of batches. A batch is known by its number, so that a run that is gone on with sees the same ones."""

    @property
    @abc.abstractmethod
    def name(self) -> str:
        """What it is, in a line."""

    @property
    @abc.abstractmethod
    def vocabulary(self) -> int:
        """The number of token ids, ``0 … V−1``."""

    @abc.abstractmethod
    def check(self, length: int) -> None:
        """Refuse a number of positions that doesn't fit.

        Raises:
            ValueError: saying what would fit.
        """

    @abc.abstractmethod
    def batch(self, length: int, size: int, generator: np.random.Generator, split: Split) -> Batch:
        """``size`` sequences of ``length`` positions."""

    @abc.abstractmethod
    def levels(self, length: int) -> Mapping[str, float]:
        """Losses to compare with, in nats by name; the last is the best that can be had where that is known."""

    @abc.abstractmethod
    def settings(self) -> dict[str, Any]:
        """What makes it this source and no other, for a checkpoint to know it again."""


def generator(split: Split, seed: int, number: int) -> np.random.Generator:
    """The random numbers of one batch; validation has its own, whatever the run's seed is."""
    entropy = [SPLITS.index(split), seed if split == "training" else 0, number]
    return np.random.default_rng(entropy)


def next_token(sequences: Int[np.ndarray, "batch n"]) -> Batch:
    """Sequences of one token more than there are positions: each position predicts the token behind it.

    >>> next_token(np.array([[5, 6, 7]])).targets
    array([[6, 7]], dtype=int32)
    """
    ids = sequences.astype(np.int32)
    return Batch(ids[:, :-1], ids[:, 1:], np.ones_like(ids[:, 1:], bool))
