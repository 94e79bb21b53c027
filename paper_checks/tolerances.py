"""What difference between prediction and measurement counts as none, and how far off a prediction must be to be seen.

A tolerance says for every entry the ``margin`` within which it is accepted, the ``resolution`` by which a prediction
may not be moved without being rejected, and whether the evidence has the ``power`` to tell.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from paper_checks import family


class Numbers(Protocol):
    """What a tolerance reads of the evidence."""

    @property
    def measured(self) -> np.ndarray: ...
    @property
    def stderr(self) -> np.ndarray | None: ...
    @property
    def draws(self) -> int: ...


class Tolerance(Protocol):
    """The three questions that a tolerance answers, each for every entry."""

    def score(self, prediction: np.ndarray, found: Numbers) -> np.ndarray:
        """The difference in units of what is accepted: 1 is the edge."""
        ...

    def resolution(self, prediction: np.ndarray) -> np.ndarray:
        """The shift of a prediction that must be seen."""
        ...

    def powerful(self, prediction: np.ndarray, found: Numbers) -> np.ndarray:
        """Whether such a shift would be seen."""
        ...

    def in_words(self) -> str:
        """The tolerance as the report prints it."""
        ...


@dataclass(frozen=True)
class Exact:
    """Equality up to rounding: ``operations · eps · max(|prediction|, scale)``.

    Attributes:
        operations: how many roundings may add up.
        dtype: what was computed in.
        scale: the size of what was added up, 1 unless said; entries far below it are as uncertain as it is.
        zero_step: the shift of a zero that must be seen.
    """

    operations: float = 64
    dtype: str = "float64"
    scale: float = 1.0
    zero_step: float = 0.05

    def score(self, prediction: np.ndarray, found: Numbers) -> np.ndarray:
        return np.abs(found.measured - prediction) / self._margin(prediction)

    def resolution(self, prediction: np.ndarray) -> np.ndarray:
        return _relative_step(prediction, self._margin(prediction), self.zero_step)

    def powerful(self, prediction: np.ndarray, found: Numbers) -> np.ndarray:
        return self.resolution(prediction) > 2 * self._margin(prediction)

    def in_words(self) -> str:
        return (
            f"exact: {self.operations:g} roundings of {self.dtype} at scale {self.scale:g}; resolves 5 %, "
            f"{self.zero_step:g} of a zero"
        )

    def _margin(self, prediction: np.ndarray) -> np.ndarray:
        return self.operations * np.finfo(self.dtype).eps * np.maximum(np.abs(prediction), self.scale)


@dataclass(frozen=True)
class Remainder:
    """Equality up to what a limit or a root leaves out, with the reason for its size.

    Attributes:
        size: relative to the prediction, or to the scale where that is larger.
        because: where the size comes from.
        scale: the size below which the remainder doesn't fall with the prediction.
        zero_step: the shift of a zero that must be seen.
    """

    size: float
    because: str
    scale: float = 1.0
    zero_step: float = 0.05

    def score(self, prediction: np.ndarray, found: Numbers) -> np.ndarray:
        return np.abs(found.measured - prediction) / self._margin(prediction)

    def resolution(self, prediction: np.ndarray) -> np.ndarray:
        return _relative_step(prediction, self._margin(prediction), self.zero_step)

    def powerful(self, prediction: np.ndarray, found: Numbers) -> np.ndarray:
        return self.resolution(prediction) > 2 * self._margin(prediction)

    def in_words(self) -> str:
        return f"within {self.size:.3g} ({self.because}); resolves 5 %, {self.zero_step:g} of a zero"

    def _margin(self, prediction: np.ndarray) -> np.ndarray:
        return self.size * np.maximum(np.abs(prediction), self.scale)


@dataclass(frozen=True)
class Statistical:
    """Agreement within the standard errors that the whole family of comparisons affords.

    Attributes:
        percent: the relative shift of a prediction that must be seen, in per cent.
        step: the absolute shift that must be seen where that is larger (small entries beside large ones, zeros).
    """

    percent: float = 5.0
    step: float = 0.0

    def score(self, prediction: np.ndarray, found: Numbers) -> np.ndarray:
        return np.abs(found.measured - prediction) / (family.critical(found.draws) * _errors(found))

    def resolution(self, prediction: np.ndarray) -> np.ndarray:
        return np.maximum(self.percent / 100 * np.abs(prediction), self.step)

    def powerful(self, prediction: np.ndarray, found: Numbers) -> np.ndarray:
        wanted = (family.critical(found.draws) + family.power_margin()) * _errors(found)
        return self.resolution(prediction) >= wanted

    def in_words(self) -> str:
        step = f", at least {self.step:g}" if self.step else ""
        return (
            f"statistical: a share of the family's failure probability {family.FAILURE:g}; resolves {self.percent:g} %"
            f"{step} with power {family.POWER:g}"
        )


@dataclass(frozen=True)
class Rate:
    """A fitted exponent, within its confidence interval and what the law's next order adds to the slope.

    Attributes:
        step: the shift of the exponent that must be seen.
        allowance: the part of the slope that belongs to the next order.
        because: where the allowance comes from.
    """

    step: float = 0.1
    allowance: float = 1e-9
    because: str = "rounding"

    def score(self, prediction: np.ndarray, found: Numbers) -> np.ndarray:
        return np.abs(found.measured - prediction) / self._margin(found)

    def resolution(self, prediction: np.ndarray) -> np.ndarray:
        return np.full(prediction.shape, self.step)

    def powerful(self, prediction: np.ndarray, found: Numbers) -> np.ndarray:
        return self.step >= self._margin(found) + family.power_margin() * _rate_errors(found)

    def in_words(self) -> str:
        return f"rate: the confidence interval plus {self.allowance:g} ({self.because}); resolves {self.step:g}"

    def _margin(self, found: Numbers) -> np.ndarray:
        return family.critical(found.draws) * _rate_errors(found) + self.allowance


@dataclass(frozen=True)
class AtLeast:
    """An inequality ``measured ≥ prediction``; turned round for what must stay below by the sign of both.

    Attributes:
        step: by how much the bound may be raised at most before it is broken: how tight it is.
        slack: rounding.
    """

    step: float
    slack: float = 1e-12

    def score(self, prediction: np.ndarray, found: Numbers) -> np.ndarray:
        errors = np.zeros_like(prediction) if found.stderr is None else found.stderr
        return (prediction - found.measured) / (self.slack + family.critical(max(found.draws, 2)) * errors)

    def resolution(self, prediction: np.ndarray) -> np.ndarray:
        return np.full(prediction.shape, self.step)

    def powerful(self, prediction: np.ndarray, found: Numbers) -> np.ndarray:
        return self.score(prediction + self.step, found) > 1

    def in_words(self) -> str:
        return f"an inequality, slack {self.slack:g}; raised by {self.step:g} it is broken"


def _relative_step(prediction: np.ndarray, margin: np.ndarray, zero_step: float) -> np.ndarray:
    """Five per cent; what is so close to 0 that this drowns in the margin counts as 0."""
    step = 0.05 * np.abs(prediction)
    return np.where(step > 2 * margin, step, zero_step)


def _errors(found: Numbers) -> np.ndarray:
    assert found.stderr is not None
    # Draws that agree to the last bit leave rounding alone.
    return np.maximum(found.stderr, 4 * np.finfo(np.float64).eps * np.maximum(np.abs(found.measured), 1e-150))


def _rate_errors(found: Numbers) -> np.ndarray:
    return np.zeros_like(found.measured) if found.stderr is None else found.stderr
