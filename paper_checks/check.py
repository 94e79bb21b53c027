"""What a check is, and what measuring it leaves behind."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from paper_checks.effort import Effort
from paper_checks.tolerances import Tolerance


@dataclass(frozen=True, eq=False)
class Curve:
    """One line of a check's plot: a measurement over ``x`` with its errors, beside the prediction and the control."""

    name: str
    x: np.ndarray
    measured: np.ndarray
    stderr: np.ndarray | None = None
    predicted: np.ndarray | None = None
    control: np.ndarray | None = None


@dataclass(frozen=True, eq=False)
class Plot:
    """The axes on which a check's curves are drawn."""

    curves: tuple[Curve, ...]
    x_label: str
    y_label: str
    log_x: bool = False
    log_y: bool = False


@dataclass(frozen=True, eq=False, kw_only=True)
class Evidence:
    """All that judging needs: flat arrays of one length, an entry a number that is compared.

    Attributes:
        prediction: what the statement says.
        control: what a nearby wrong statement says of the same numbers.
        measured: what was found.
        stderr: its standard errors; None where nothing was drawn.
        labels: what each entry is.
        draws: the number of independent draws behind a standard error; 0 where nothing was drawn.
        seed: of the draws, or None.
        plot: curves to show, or None.
        finding: what the numbers say beyond the verdict, in a sentence made from them.
    """

    prediction: np.ndarray
    control: np.ndarray
    measured: np.ndarray
    stderr: np.ndarray | None
    labels: tuple[str, ...]
    draws: int = 0
    seed: int | None = None
    plot: Plot | None = None
    finding: str = ""


@dataclass(frozen=True, eq=False, kw_only=True)
class Check:
    """One statement with the means to refute it.

    Attributes:
        id: ``source.name``.
        statement: in words.
        formula: the same as a formula.
        source: the paper and its section or theorem, as it is known here.
        settings: sizes and numbers that it is tried at.
        estimator: how the measured numbers come about.
        tolerance: what difference counts as none.
        control: the nearby wrong prediction, in words.
        measure: makes the evidence; the only part that draws.
        quick: whether it belongs to the quick set.
        quick_tolerance: what a quick run takes in the place of the tolerance, if anything: it draws less.
    """

    id: str
    statement: str
    formula: str
    source: str
    settings: str
    estimator: str
    tolerance: Tolerance
    control: str
    measure: Callable[[Effort], Evidence]
    quick: bool = True
    quick_tolerance: Tolerance | None = None


def at(check: Check, effort: Effort) -> tuple[Check, Effort]:
    """The check with the tolerance of this run, and what it may draw: one that isn't of the quick set has one size."""
    if not check.quick:
        return check, Effort(quick=False)
    if effort.quick and check.quick_tolerance is not None:
        return replace(check, tolerance=check.quick_tolerance), effort
    return check, effort


def evidence(
    prediction: Any,
    control: Any,
    measured: Any,
    stderr: Any = None,
    *,
    labels: Sequence[str] | str = "",
    draws: int = 0,
    seed: int | None = None,
    plot: Plot | None = None,
    finding: str = "",
) -> Evidence:
    """Flatten numbers of one shape, ``prediction`` and ``control`` spread to that of ``measured``.

    ``labels`` is one text an entry, or one text that is counted through.
    """
    found = np.asarray(measured, np.float64)
    spread = [np.broadcast_to(np.asarray(part, np.float64), found.shape).ravel() for part in (prediction, control)]
    errors = None if stderr is None else np.broadcast_to(np.asarray(stderr, np.float64), found.shape).ravel()
    return Evidence(
        prediction=spread[0],
        control=spread[1],
        measured=found.ravel(),
        stderr=errors,
        labels=_labels(labels, found.shape),
        draws=draws,
        seed=seed,
        plot=plot,
        finding=finding,
    )


def _labels(labels: Sequence[str] | str, shape: tuple[int, ...]) -> tuple[str, ...]:
    if not isinstance(labels, str):
        if len(labels) != np.prod(shape, dtype=int):
            raise ValueError(f"{len(labels)} labels for {np.prod(shape, dtype=int)} entries")
        return tuple(labels)
    if not shape or shape == (1,):
        return (labels,)
    return tuple(f"{labels}[{', '.join(map(str, index))}]" for index in np.ndindex(shape))
