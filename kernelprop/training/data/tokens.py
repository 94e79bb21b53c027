"""Token ids of a long text, from which stretches are taken at random."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Int

from kernelprop import door
from kernelprop.training.data.markov import entropy
from kernelprop.training.data.source import Batch, Source, Split, next_token

# The part of a text that is held out where it has no validation part of its own.
HELD_OUT = 0.1


@dataclass(frozen=True, eq=False)
class Tokens(Source):
    """A text to train on and one to validate on, as token ids.

    Attributes:
        training: ids, ``(n,)``.
        validation: ids, ``(m,)``.
        size: the number of ids ``V``.
        title: what it is, in a line.
    """

    training: Int[np.ndarray, "n"]
    validation: Int[np.ndarray, "m"]
    size: int
    title: str

    @property
    def name(self) -> str:
        """What it is, in a line."""
        return f"{self.title}, {len(self.training) + len(self.validation):,} tokens of {self.size}"

    @property
    def vocabulary(self) -> int:
        """The number of ids."""
        return self.size

    def check(self, length: int) -> None:
        """Refuse a length that one of the parts does not have.

        Raises:
            ValueError: naming the part.
        """
        for part, ids in (("training", self.training), ("validation", self.validation)):
            if len(ids) <= length:
                raise ValueError(
                    f"{self.title}: its {part} part has {len(ids)} tokens; {length} positions want {length + 1} or more"
                )

    def levels(self, length: int) -> Mapping[str, float]:
        """The entropy of the single tokens' frequencies."""
        return {"unigram": entropy(np.bincount(self.training) / len(self.training))}

    def batch(self, length: int, size: int, generator: np.random.Generator, split: Split) -> Batch:
        """Stretches that begin anywhere."""
        ids = self.training if split == "training" else self.validation
        starts = generator.integers(len(ids) - length, size=size)
        return next_token(ids[starts[:, None] + np.arange(length + 1)])

    def settings(self) -> dict[str, Any]:
        """A digest of the texts."""
        digest = hashlib.sha256(self.training.astype("<i4").tobytes())
        digest.update(self.validation.astype("<i4").tobytes())
        return {"kind": "tokens", "size": self.size, "digest": digest.hexdigest()}


def tokens(ids: Any, vocabulary: int | None = None, *, validation: Any = None, title: str = "token ids") -> Tokens:
    """A source of given token ids.

    Args:
        ids: whole numbers, ``(n,)``.
        vocabulary: ``V``; one more than the largest id if not given.
        validation: ids to validate on; the last tenth of ``ids`` if not given.
        title: what it is, for messages.

    Raises:
        ValueError: for an id outside the vocabulary, naming its position.

    >>> tokens([0, 1, 2, 3], vocabulary=3)
    Traceback (most recent call last):
    ValueError: token ids: position 3: id 3 is outside 0 to 2
    """
    parts = [_ids(ids, title)] + ([] if validation is None else [_ids(validation, f"{title}: validation")])
    largest = max(int(part.max()) for part in parts)
    size = largest + 1 if vocabulary is None else door.count(vocabulary, "vocabulary")
    for part, name in zip(parts, (title, f"{title}: validation"), strict=False):
        wrong = np.flatnonzero((part < 0) | (part >= size))
        if len(wrong):
            raise ValueError(f"{name}: position {wrong[0]}: id {part[wrong[0]]} is outside 0 to {size - 1}")
    if len(parts) == 1:
        cut = len(parts[0]) - max(1, round(HELD_OUT * len(parts[0])))
        parts = [parts[0][:cut], parts[0][cut:]]
    return Tokens(parts[0], parts[1], size, title)


def _ids(value: Any, name: str) -> np.ndarray:
    array = np.asarray(value)
    if array.ndim != 1 or array.dtype.kind not in "iu" or len(array) < 2:
        raise ValueError(f"{name}: token ids (n,), whole numbers, are wanted; {array.dtype} {array.shape} was given")
    return array
