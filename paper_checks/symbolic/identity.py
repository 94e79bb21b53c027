"""An identity as evidence: proved by sympy first, then evaluated where the control is told apart."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import sympy as sp

from paper_checks.check import Evidence, evidence

Point = dict[Any, Any]
# Digits of the evaluation; the comparison is in float64.
DIGITS = 30


def proved(claimed: sp.Expr, derived: sp.Expr) -> bool:
    """Whether their difference simplifies to 0."""
    difference = sp.sympify(claimed - derived)
    return difference == 0 or sp.expand(difference) == 0 or sp.simplify(difference) == 0


def identities(
    claims: Sequence[tuple[str, Any, Any, Any]],
    points: Sequence[Point],
    finding: str = "",
) -> Evidence:
    """Compare ``(label, claimed, derived, control)``: what isn't proved is measured as NaN, which nothing accepts."""
    labels, right, wrong, found = [], [], [], []
    for label, claimed, derived, control in claims:
        holds = proved(claimed, derived)
        for number, point in enumerate(points):
            labels.append(f"{label}, point {number + 1}")
            right.append(_value(claimed, point))
            wrong.append(_value(control, point))
            found.append(_value(derived, point) if holds else np.nan)
    return evidence(right, wrong, found, labels=labels, finding=finding)


def _value(expression: sp.Expr, point: Point) -> float:
    return float(sp.N(sp.sympify(expression).subs(point), DIGITS))
