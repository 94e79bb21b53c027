"""Run checks one after the other."""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from paper_checks import family
from paper_checks.check import Check, Evidence, at
from paper_checks.effort import Effort
from paper_checks.tolerances import Rate, Statistical
from paper_checks.verdict import HOLDS, Verdict, judge


@dataclass(frozen=True, eq=False)
class Outcome:
    """A check, what it found, and what that says; ``seconds`` of processor time."""

    check: Check
    found: Evidence
    verdict: Verdict
    seconds: float


def run(
    checks: Sequence[Check], effort: Effort, report: Callable[[int, int, Outcome | Check], None] | None = None
) -> list[Outcome]:
    """Measure and judge; ``report(done, total, …)`` is called with each check before, and its outcome after."""
    outcomes = []
    for number, check in enumerate(checks):
        if report is not None:
            report(number, len(checks), check)
        started = time.process_time()
        own, size = at(check, effort)
        found = own.measure(size)
        outcome = Outcome(own, found, judge(found, own.tolerance), time.process_time() - started)
        outcomes.append(outcome)
        if report is not None:
            report(number + 1, len(checks), outcome)
    refuse_large_family(outcomes)
    return outcomes


def comparisons(outcomes: Iterable[Outcome]) -> int:
    """How many comparisons took a share of the family's failure probability."""
    statistical = [one for one in outcomes if isinstance(one.check.tolerance, Statistical | Rate) and one.found.draws]
    return sum(len(one.found.measured) for one in statistical)


def refuse_large_family(outcomes: Iterable[Outcome]) -> None:
    """Refuse a run whose comparisons would use up more than the family's failure probability."""
    count = comparisons(outcomes)
    if count > family.COMPARISONS:
        raise ValueError(f"{count} statistical comparisons: the family allows {family.COMPARISONS}")


def passed(outcomes: Iterable[Outcome]) -> bool:
    """Whether every statement holds."""
    return all(one.verdict.name == HOLDS for one in outcomes)
