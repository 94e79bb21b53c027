"""A finding: one thing that is wrong with a network, or worth knowing, in words and as data."""

from dataclasses import dataclass
from typing import Any

KINDS = ("collapse", "silence", "growth", "shrinkage", "queries", "gradients")


@dataclass(frozen=True)
class Finding:
    """One thing that was found.

    Attributes:
        kind: ``"collapse"`` of the rank, ``"silence"`` of a position, ``"growth"`` and ``"shrinkage"`` of the diagonal,
            dead ``"queries"``, a spread of ``"gradients"`` over the layers.
        words: a clause that goes on from the network's name.
        layers: the first and the last layer that it holds for, or None where it is about all of them.
        ill: whether it calls for a remedy; else it is only worth knowing.
    """

    kind: str
    words: str
    layers: tuple[int, int] | None = None
    ill: bool = True

    def as_data(self) -> dict[str, Any]:
        """The finding as JSON takes it."""
        return {"kind": self.kind, "ill": self.ill, "words": self.words, "layers": self.layers and list(self.layers)}


def runs(layers: list[int]) -> str:
    """Layers as a reader says them.

    >>> runs([2, 3, 4, 7, 9, 10])
    '2 to 4, 7, 9 to 10'
    """
    starts = [n for n in layers if n - 1 not in layers]
    ends = [n for n in layers if n + 1 not in layers]
    return ", ".join(str(a) if a == b else f"{a} to {b}" for a, b in zip(starts, ends, strict=True))
