"""A small parallel text: a sentence, then its translation, word for word and in reverse order."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelprop import door
from kernelprop.training.data.source import Batch, Source, Split, next_token


@dataclass(frozen=True)
class Reversal(Source):
    """``s_1 … s_n | π(s_n) … π(s_1)``: source words, a mark, and the words of another vocabulary in reverse order.

    Prefix form: one causal network reads the source and says the translation, whose positions alone count. Ids:
    source words ``0 … V−1``, the mark ``V``, words of the other language ``V+1 … 2V``. ``T = 2n`` positions.
    """

    words: int
    seed: int

    @property
    def name(self) -> str:
        """What it is, in a line."""
        return f"reversal with {self.words} words in each of two vocabularies"

    @property
    def vocabulary(self) -> int:
        """Both vocabularies and the mark."""
        return 2 * self.words + 1

    @property
    def dictionary(self) -> np.ndarray:
        """The id of every source word's translation, ``(V,)``."""
        return self.words + 1 + np.random.default_rng(self.seed).permutation(self.words)

    def check(self, length: int) -> None:
        """Refuse an odd length.

        Raises:
            ValueError: for a length that is not ``2n``.
        """
        if length % 2:
            raise ValueError(f"reversal: {length} positions are odd; n words, a mark and n − 1 translations are 2n")

    def levels(self, length: int) -> Mapping[str, float]:
        """``log V`` for who has found that a translation is wanted but not which, and 0."""
        return {"uniform": math.log(self.words), "best": 0.0}

    def batch(self, length: int, size: int, generator: np.random.Generator, split: Split) -> Batch:
        """Sentences of independent uniform words, and their translations."""
        half = length // 2
        source = generator.integers(self.words, size=(size, half))
        mark = np.full((size, 1), self.words)
        whole = next_token(np.concatenate([source, mark, self.dictionary[source[:, ::-1]]], axis=1))
        counted = np.broadcast_to(np.arange(length) >= half, whole.tokens.shape)
        return whole._replace(counted=counted)

    def settings(self) -> dict[str, Any]:
        """Words and the dictionary's seed."""
        return {"kind": "reversal", "words": self.words, "seed": self.seed}


def reversal(words: int = 16, seed: int = 0) -> Reversal:
    """The reversal task with ``words`` words a vocabulary; ``seed`` makes the dictionary.

    >>> task = reversal(4)
    >>> batch = task.batch(6, 1, np.random.default_rng(0), "training")
    >>> bool((batch.targets[0, 3:] == task.dictionary[batch.tokens[0, 2::-1]]).all())
    True
    """
    return Reversal(door.count(words, "words", least=2), door.count(seed, "seed", least=0))
