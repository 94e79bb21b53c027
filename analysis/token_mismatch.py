"""Mismatch for real token statistics: repeated words under random embeddings."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

import kernelprop as kp

MOST = 512  # words of a text


def _shipped() -> tuple[str, ...]:
    return kp.examples.minilm().tokens


@dataclass(frozen=True)
class Spec:
    """The tokens of one sequence: those of the shipped sentence, or the first words of a text."""

    name: ClassVar[str] = "token_mismatch"
    question: ClassVar[str] = "how far off is signal-preserving attention on real text, and how much does a fit help?"

    source: str = "the shipped sentence"
    tokens: tuple[str, ...] = _shipped()
    depth: int = 12
    gamma: float = 0.005
    rho: float = 0.8
    correlation: float = 0.0

    @classmethod
    def quick(cls) -> Self:
        words = ("the", "kernel", "of", "the", "layer", "is", "the", "kernel")
        return cls(source="eight words", tokens=words, depth=4)

    @classmethod
    def of_file(cls, path: Path) -> Self:
        """The first words of a text, in small letters; punctuation marks are words of their own.

        Raises:
            ValueError: for a file that can't be read as text, or has fewer than two words.
        """
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ValueError(f"{path}: can't be read as text: {error}") from error
        words = tuple(re.findall(r"\w+|[^\w\s]", text.lower())[:MOST])
        if len(words) < 2:
            raise ValueError(f"{path}: {len(words)} words; two or more are wanted")
        return cls(source=str(path), tokens=words)

    @property
    def file(self) -> str:
        """The text that the tokens are from, if there is one."""
        return self.source if Path(self.source).is_file() else ""

    def points(self) -> tuple[str, ...]:
        return ("espa", "uspa")

    def measure(self, point: str) -> dict[str, Any]:
        kernel = kp.kernels.from_tokens(self.tokens, self.correlation)
        if point == "espa":
            fit = kp.fit_espa(kernel, self.depth, self.gamma)
        else:
            fit = kp.fit_uspa(kernel, self.depth, self.rho)
        return {
            "kernel": kernel.astype(np.float32),
            "diagonal": fit.before.diagonal,
            "fitted_diagonal": fit.after.diagonal,
            "fitted": np.asarray(fit.value),
            "distance": np.array([fit.distance_before, fit.distance_after]),
        }
