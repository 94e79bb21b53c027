"""An order-2 Markov source whose entropies are known exactly."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Float

from kernelprop import door
from kernelprop.training.data.source import Batch, Source, Split, next_token


@dataclass(frozen=True, eq=False)
class Markov(Source):
    """``P(x_i | x_{i−2}, x_{i−1}) = transitions[x_{i−2}, x_{i−1}, x_i]``, started from its stationary pairs.

    Attributes:
        transitions: ``(V, V, V)``.
        pairs: the stationary distribution of two tokens in a row, ``(V, V)``.
    """

    transitions: Float[np.ndarray, "V V V"]
    pairs: Float[np.ndarray, "V V"]

    @property
    def name(self) -> str:
        """What it is, in a line."""
        return f"order-2 Markov source of {self.vocabulary} symbols"

    @property
    def vocabulary(self) -> int:
        """The number of symbols."""
        return len(self.transitions)

    def check(self, length: int) -> None:
        """Any number of positions fits."""

    def entropies(self) -> tuple[float, float, float]:
        """``H1 = H(x_i)``, ``H2 = H(x_i | x_{i−1})``, ``H3 = H(x_i | x_{i−2}, x_{i−1})``, in nats.

        What a predictor that knows nothing, the last token, or the last two can reach.
        """
        single = self.pairs.sum(1)
        triples = self.pairs[:, :, None] * self.transitions
        first, second, third = (entropy(p) for p in (single, self.pairs, triples))
        return first, second - first, third - second

    def levels(self, length: int) -> Mapping[str, float]:
        """The entropies, and the least mean loss: the first position sees one token, the others at least two."""
        first, second, third = self.entropies()
        least = (second + (length - 1) * third) / length
        return {"unigram": first, "bigram": second, "conditional": third, "best": least}

    def agreement(self, length: int) -> Float[np.ndarray, "T T"]:
        """``P(x_i = x_j)``, exact: the kernel of independent embeddings of unit variance, in the mean."""
        size = self.vocabulary
        # joint[a, b, c] = P(x_0 = a, x_k = b, x_{k+1} = c); it starts at k = 0, where x_0 = x_k.
        joint = np.eye(size)[:, :, None] * self.pairs[None]
        lags = []
        for _ in range(length):
            lags.append(np.einsum("aac->", joint))
            joint = np.einsum("abc,bcd->acd", joint, self.transitions)
        index = np.arange(length)
        return np.array(lags)[np.abs(index[:, None] - index[None])]

    def batch(self, length: int, size: int, generator: np.random.Generator, split: Split) -> Batch:
        """Independent stretches of the source."""
        vocabulary = self.vocabulary
        draws = generator.random((length + 1, size))
        both = np.searchsorted(self._pair_edges, draws[0], side="right")
        sequence = list(np.divmod(both, vocabulary))
        for draw in draws[1:length]:
            edges = self._edges[sequence[-2], sequence[-1]]
            sequence.append(np.sum(edges <= draw[:, None], axis=1))
        return next_token(np.stack(sequence[: length + 1], axis=1))

    def settings(self) -> dict[str, Any]:
        """The transitions."""
        return {"kind": "markov", "transitions": self.transitions}

    @cached_property
    def _edges(self) -> np.ndarray:
        return _edges(self.transitions)

    @cached_property
    def _pair_edges(self) -> np.ndarray:
        return _edges(self.pairs.ravel())


def markov(vocabulary: int = 16, seed: int = 0, concentration: float = 0.1, *, transitions: Any = None) -> Markov:
    """An order-2 Markov source: every row of its transitions is a Dirichlet draw, or the transitions are given.

    Args:
        vocabulary: the number of symbols ``V``.
        seed: of the rows.
        concentration: of the Dirichlet distribution, the same for all symbols; the smaller, the more of the next
            symbol is known.
        transitions: instead of these, ``(V, V, V)``, rows summing to 1.

    Raises:
        ValueError: for transitions that are no distributions, or that have no single stationary distribution.

    >>> fair = markov(transitions=np.full((2, 2, 2), 0.5))
    >>> [round(float(h), 12) for h in fair.entropies()]
    [0.69314718056, 0.69314718056, 0.69314718056]
    """
    if transitions is None:
        size = door.count(vocabulary, "vocabulary", least=2)
        weight = door.real_number(concentration, "concentration")
        if weight <= 0:
            raise ValueError(f"concentration: {weight:g} is not positive")
        rows = np.random.default_rng(door.count(seed, "seed", least=0)).dirichlet(np.full(size, weight), (size, size))
    else:
        rows = _checked(transitions)
    return Markov(rows, stationary_pairs(rows))


def stationary_pairs(transitions: Float[np.ndarray, "V V V"]) -> Float[np.ndarray, "V V"]:
    """The distribution of ``(x_{i−1}, x_i)`` that a step leaves as it is: ``π(b, c) = Σ_a π(a, b) P(c | a, b)``.

    Raises:
        ValueError: where there is more than one.
    """
    size = len(transitions)
    step = np.zeros((size, size, size, size))
    for middle in range(size):
        step[:, middle, middle, :] = transitions[:, middle, :]
    change = step.reshape(size**2, size**2).T - np.eye(size**2)
    if np.linalg.matrix_rank(change) < size**2 - 1:
        raise ValueError("transitions: the source falls apart: more than one distribution of pairs is stationary")
    system = np.vstack([change, np.ones(size**2)])
    found = np.linalg.lstsq(system, np.append(np.zeros(size**2), 1.0), rcond=None)[0]
    # Rounding can leave an unreachable pair a few ulp below 0.
    found = np.maximum(found, 0.0)
    return (found / found.sum()).reshape(size, size)


def entropy(distribution: Float[np.ndarray, "..."]) -> float:
    """``−Σ p log p`` in nats.

    >>> round(entropy(np.array([0.5, 0.5, 0.0])), 12)
    0.69314718056
    """
    positive = distribution[distribution > 0]
    return float(-np.sum(positive * np.log(positive)))


def _edges(rows: np.ndarray) -> np.ndarray:
    """Where each symbol's interval ends; the last one is not needed, and rounding can't miss it so."""
    return np.cumsum(rows, axis=-1)[..., :-1]


def _checked(transitions: Any) -> np.ndarray:
    array = door.real_array(transitions, "transitions").astype(np.float64)
    if array.ndim != 3 or len(set(array.shape)) != 1 or len(array) < 2:
        raise ValueError(f"transitions: shape {array.shape} is not (V, V, V) with V at least 2")
    if (array < 0).any():
        where = tuple(int(i) for i in np.argwhere(array < 0)[0])
        raise ValueError(f"transitions: entry {where} is {array[where]:g}; a probability can't be negative")
    gap = np.abs(array.sum(-1) - 1)
    if gap.max() > 1e-9:
        where = tuple(int(i) for i in np.unravel_index(gap.argmax(), gap.shape))
        raise ValueError(f"transitions: row {where} sums to {array[where].sum():.9g}, not to 1")
    return array
