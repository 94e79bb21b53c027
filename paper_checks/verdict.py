"""Judging: a pure function of the evidence and the tolerance."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from paper_checks.check import Evidence
from paper_checks.tolerances import AtLeast, Tolerance

HOLDS, FAILS, INCONCLUSIVE = "holds", "fails", "inconclusive"


@dataclass(frozen=True)
class Verdict:
    """What the evidence says.

    Attributes:
        name: ``"holds"``, ``"fails"`` or ``"inconclusive"``.
        reason: why it isn't ``"holds"``; else empty.
        worst: the entry furthest off.
        score: its difference in units of what is accepted.
        control_worst: the entry that speaks most against the control.
        control_score: the control's difference there; above 1 it is rejected.
    """

    name: str
    reason: str
    worst: int
    score: float
    control_worst: int
    control_score: float

    @property
    def control_rejected(self) -> bool:
        """Whether the same check on the same data rejects the control."""
        return not self.control_score <= 1


def judge(found: Evidence, tolerance: Tolerance) -> Verdict:
    """``fails`` where the prediction is missed; ``inconclusive`` where the control or a stated shift is not caught."""
    scores, against = (_scores(part, found, tolerance) for part in (found.prediction, found.control))
    worst, control_worst = int(np.argmax(scores)), int(np.argmax(against))
    name, reason = HOLDS, ""
    powerful = tolerance.powerful(found.prediction, found)
    if not scores[worst] <= 1:
        name, reason = FAILS, f"{found.labels[worst]} is {scores[worst]:.3g} times the tolerance off"
    elif not against[control_worst] > 1:
        name, reason = INCONCLUSIVE, "the control is not rejected"
    elif not powerful.all():
        weak = int(np.argmin(powerful))
        name, reason = INCONCLUSIVE, f"{found.labels[weak]}: too few draws for the stated resolution"
    return Verdict(name, reason, worst, float(scores[worst]), control_worst, float(against[control_worst]))


def mutations(found: Evidence, tolerance: Tolerance) -> Iterator[tuple[str, Evidence]]:
    """The same evidence with one entry of the prediction moved by the check's resolution, up and down.

    A bound is moved only towards what it forbids.
    """
    steps = tolerance.resolution(found.prediction)
    for index, step in enumerate(steps):
        for sign in (1.0,) if isinstance(tolerance, AtLeast) else (1.0, -1.0):
            moved = found.prediction.copy()
            moved[index] += sign * step
            yield f"{found.labels[index]} {sign * step:+.3g}", replace(found, prediction=moved)


def _scores(prediction: np.ndarray, found: Evidence, tolerance: Tolerance) -> np.ndarray:
    """What isn't finite is infinitely far off."""
    scores = tolerance.score(prediction, found)
    return np.where(np.isfinite(found.measured) & np.isfinite(prediction) & np.isfinite(scores), scores, np.inf)
