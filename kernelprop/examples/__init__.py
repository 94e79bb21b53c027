"""Real inputs that ship with the package."""

from dataclasses import dataclass
from importlib.resources import files

import numpy as np

_MINILM = "minilm-l6-attention.npz"


@dataclass(frozen=True, eq=False)
class Example:
    """Attention and kernels of a real network on one sequence.

    Attributes:
        name: what it is called on the command line.
        attention: softmax attention of every layer and head, ``(L, H, T, T)``, float64.
        kernels: ``H H'/d`` measured on the hidden states at depths ``0…L``, ``(L+1, T, T)``, float64.
        tokens: the ``T`` tokens.
        source: where the numbers come from, in a line.
    """

    name: str
    attention: np.ndarray
    kernels: np.ndarray
    tokens: tuple[str, ...]
    source: str


def minilm() -> Example:
    """Return the six-layer sentence encoder all-MiniLM-L6-v2 on one sentence: 12 heads, 55 tokens.

    ``kernels[0]`` enters the first layer (the normalised embeddings), ``kernels[l]`` leaves layer ``l``.

    >>> example = minilm()
    >>> example.attention.shape, example.kernels.shape, example.tokens[:4]
    ((6, 12, 55, 55), (7, 55, 55), ('[CLS]', 'the', 'kernel', 'matrix'))
    """
    with (
        files("kernelprop.examples").joinpath(_MINILM).open("rb") as stream,
        np.load(stream, allow_pickle=False) as file,
    ):
        return Example(
            name="minilm",
            attention=file["attention"].astype(np.float64),
            kernels=file["kernels"].astype(np.float64),
            tokens=tuple(str(token) for token in file["tokens"]),
            source="sentence-transformers/all-MiniLM-L6-v2 (Apache-2.0) on one sentence of 55 tokens",
        )
