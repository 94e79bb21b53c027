"""Verdicts of made-up evidence: right, wrong, powerless, without a control, not a number."""

import numpy as np
import pytest

from paper_checks import family
from paper_checks.check import evidence
from paper_checks.tolerances import AtLeast, Exact, Rate, Remainder, Statistical
from paper_checks.verdict import FAILS, HOLDS, INCONCLUSIVE, judge, mutations


def sampled(measured, stderr=0.001, control=1.2, prediction=1.0, draws=10_000):
    return evidence(prediction, control, [measured], [stderr], draws=draws, labels="x")


def test_a_true_prediction_holds_and_its_control_is_rejected():
    verdict = judge(sampled(1.002), Statistical())
    assert verdict.name == HOLDS
    assert verdict.control_rejected
    assert verdict.score == pytest.approx(2 / family.critical(10_000))


@pytest.mark.parametrize(
    ("found", "name", "reason"),
    [
        (sampled(1.006), FAILS, "times the tolerance off"),
        (sampled(np.nan), FAILS, "inf times the tolerance off"),
        (sampled(1.0, control=1.001), INCONCLUSIVE, "the control is not rejected"),
        (sampled(1.0, stderr=0.02, control=2.0), INCONCLUSIVE, "too few draws for the stated resolution"),
    ],
)
def test_what_does_not_hold_says_why(found, name, reason):
    verdict = judge(found, Statistical())
    assert verdict.name == name
    assert reason in verdict.reason


def test_one_entry_of_many_is_enough_to_fail():
    measured = np.ones(50)
    measured[17] += 0.006
    verdict = judge(evidence(1.0, 1.2, measured, 0.001, draws=10_000, labels="x"), Statistical())
    assert verdict.name == FAILS
    assert "x[17]" in verdict.reason


def test_the_family_fails_as_rarely_as_it_says():
    """Of 600 independent true comparisons at this level one in a thousand families has a miss."""
    from scipy import stats

    level = 2 * stats.norm.sf(family.critical(10**9))
    assert level * family.COMPARISONS == pytest.approx(family.FAILURE, rel=1e-6)
    # Student's quantile is wider for few draws.
    assert family.critical(10) > family.critical(100) > family.critical(10**9)


def test_the_stated_power_is_kept():
    """A prediction off by the resolution, at the largest standard error that counts as enough, is caught."""
    generator, n = np.random.default_rng(0), 100_000
    stderr = 0.05 / (family.critical(10**6) + family.power_margin())
    found = evidence(1.05, 2.0, 1 + stderr * generator.normal(size=n), stderr, draws=10**6, labels="x")
    assert Statistical(percent=5 / 1.05).powerful(found.prediction, found).all()
    missed = np.mean(Statistical().score(found.prediction, found) <= 1)
    expected = 1 - family.POWER
    assert abs(missed - expected) < 4 * np.sqrt(expected / n)


CASES = {
    "exact": (Exact(), evidence([0.0, 2.0], [1.0, 2.0], [1e-16, 2.0], labels="x")),
    "remainder": (Remainder(1e-3, "a limit"), evidence([0.0, 2.0], [1.0, 2.0], [5e-4, 2.001], labels="x")),
    "statistical": (Statistical(), sampled(1.001)),
    "rate": (Rate(step=0.1), evidence([3.0], [2.5], [3.01], [0.005], draws=1000, labels="x")),
    "at least": (AtLeast(step=0.1), evidence([0.0], [0.08], [0.05], labels="x")),
}


@pytest.mark.parametrize("name", CASES)
def test_every_tolerance_accepts_the_right_and_rejects_what_is_moved(name):
    tolerance, found = CASES[name]
    assert judge(found, tolerance).name == HOLDS
    moved = list(mutations(found, tolerance))
    assert len(moved) == len(found.measured) * (1 if name == "at least" else 2)
    for label, mutant in moved:
        assert judge(mutant, tolerance).name != HOLDS, label
    assert tolerance.in_words()


def test_a_loose_bound_is_inconclusive():
    verdict = judge(evidence([0.0], [0.9], [0.8], labels="x"), AtLeast(step=0.1))
    assert verdict.name == INCONCLUSIVE


def test_labels_must_fit():
    with pytest.raises(ValueError, match="2 labels for 3 entries"):
        evidence(0, 0, [1, 2, 3], labels=["a", "b"])
