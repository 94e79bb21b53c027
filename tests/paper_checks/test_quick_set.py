"""The checks themselves: those that take no time always, the whole quick set as the slow tests' one run."""

import pytest

from paper_checks import record
from paper_checks.check import at
from paper_checks.effort import Effort
from paper_checks.registry import all_checks
from paper_checks.run import Outcome, passed, run
from paper_checks.verdict import HOLDS, judge, mutations

CHECKS = {check.id: check for check in all_checks()}
INSTANT = (
    "he2023.espa-closed-form",
    "he2023.uspa-closed-form",
    "he2023.espa-nonnegative",
    "he2023.uspa-nonnegative",
    "he2023.ordering-threshold",
    "he2023.wrong-ordering",
    "he2023.softmax-form",
    "he2023.espa-constant-diagonal",
    "he2023.tat-leaky-relu",
    "noci2022.query-jacobian",
    "noci2022.leading-order",
    "dong2021.cubic-law",
    *(name for name in CHECKS if name.startswith("symbolic.")),
)


@pytest.fixture(scope="module")
def instant() -> dict[str, Outcome]:
    return {one.check.id: one for one in run([CHECKS[name] for name in INSTANT], Effort(quick=True))}


@pytest.mark.parametrize("name", INSTANT)
def test_the_instant_ones_hold_and_can_fail(name, instant):
    one = instant[name]
    assert one.verdict.name == HOLDS, one.verdict.reason
    assert one.verdict.control_rejected
    survived = [what for what, moved in mutations(one.found, one.check.tolerance) if _holds(moved, one.check.tolerance)]
    assert not survived


def test_a_run_is_repeated_to_the_last_bit(instant):
    """Seeds are the checks' own, so that a run does not depend on what ran before it."""
    again = run([CHECKS["noci2022.query-jacobian"]], Effort(quick=True))
    assert passed(again)
    assert again[0].found.measured.tolist() == instant["noci2022.query-jacobian"].found.measured.tolist()


def test_a_quick_run_states_a_coarser_resolution_where_it_draws_less():
    quick, full = Effort(quick=True), Effort(quick=False)
    check = CHECKS["noci2022.query-jacobian"]
    assert at(check, full) == (check, full)
    own, size = at(check, quick)
    assert own.tolerance == check.quick_tolerance != check.tolerance
    assert size == quick
    # Outside the quick set there is one size.
    assert at(CHECKS["whole_networks.query-linear"], quick) == (CHECKS["whole_networks.query-linear"], full)


def _holds(found, tolerance) -> bool:
    return judge(found, tolerance).name == HOLDS


@pytest.mark.slow
def test_the_quick_set_holds(quick_run):
    verdicts = {entry["id"]: (entry["verdict"], entry["reason"]) for entry in quick_run.report["checks"]}
    assert all(verdict == (HOLDS, "") for verdict in verdicts.values()), verdicts
    assert quick_run.code == 0
    assert list(verdicts) == [check.id for check in all_checks() if check.quick]
    assert quick_run.report["run"]["verdicts"]["holds"] == len(verdicts)


@pytest.mark.slow
def test_every_mutation_of_the_quick_set_turns_red(quick_run):
    """Without new draws: the quick run's own numbers, judged again."""
    survived = []
    for entry in quick_run.report["checks"]:
        tolerance = at(CHECKS[entry["id"]], Effort(quick=True))[0].tolerance
        moved = mutations(record.evidence_of(entry), tolerance)
        survived += [(entry["id"], what) for what, mutant in moved if _holds(mutant, tolerance)]
    assert not survived


@pytest.mark.slow
def test_the_quick_run_draws_its_curves(quick_run):
    for entry in quick_run.report["checks"]:
        for ending in ("svg", "png"):
            assert (quick_run.folder / "plots" / f"{entry['id']}.{ending}").is_file() == (entry["plot"] is not None)
