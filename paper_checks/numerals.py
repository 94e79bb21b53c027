"""Numbers as the table and the report print them."""

import numpy as np

from paper_checks import family
from paper_checks.run import Outcome
from paper_checks.tolerances import AtLeast, Exact, Rate, Remainder


def predicted(outcome: Outcome) -> str:
    """The prediction of the entry furthest off."""
    sign = "≥ " if isinstance(outcome.check.tolerance, AtLeast) else ""
    return f"{sign}{outcome.found.prediction[outcome.verdict.worst]:.6g}"


def measured(outcome: Outcome) -> str:
    """The measurement of that entry, with its standard error where it has one."""
    found, worst = outcome.found, outcome.verdict.worst
    value = found.measured[worst]
    if found.stderr is None or not found.stderr[worst] > 0:
        return f"{value:.6g}"
    error = found.stderr[worst]
    digits = max(0, 1 - int(np.floor(np.log10(error))))
    return f"{value:.{min(digits, 12)}f} ± {error:.2g}" if 1e-5 < abs(value) < 1e6 else f"{value:.6g} ± {error:.2g}"


def deviation(outcome: Outcome) -> str:
    """How far off that entry is: in standard errors, as a relative difference, or by how much a bound is kept."""
    found, worst, tolerance = outcome.found, outcome.verdict.worst, outcome.check.tolerance
    difference = found.measured[worst] - found.prediction[worst]
    if isinstance(tolerance, AtLeast):
        return f"kept by {difference:.2g}"
    if isinstance(tolerance, Exact | Remainder):
        scale = abs(found.prediction[worst])
        return f"{difference / scale if scale else difference:+.1e}"
    if isinstance(tolerance, Rate) and (found.stderr is None or not found.stderr[worst] > 0):
        return f"slope {difference:+.1e}"
    assert found.stderr is not None
    return f"z = {difference / found.stderr[worst]:+.2f}" if found.stderr[worst] else f"{difference:+.1e}"


def interval(outcome: Outcome) -> str:
    """The confidence interval of a fitted exponent, at the level of the family; empty where there is none."""
    found, worst = outcome.found, outcome.verdict.worst
    if not isinstance(outcome.check.tolerance, Rate) or found.stderr is None or not found.stderr[worst] > 0:
        return ""
    half = family.critical(found.draws) * found.stderr[worst]
    return f", interval {found.measured[worst] - half:.3f} to {found.measured[worst] + half:.3f}"
