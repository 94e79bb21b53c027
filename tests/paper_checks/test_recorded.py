"""The recorded full run: complete, green, reproduced by its own numbers, and red under every mutation."""

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import paper_checks
from paper_checks import family, record
from paper_checks.registry import all_checks
from paper_checks.tolerances import Rate, Statistical
from paper_checks.verdict import HOLDS, judge, mutations

FOLDER = Path(paper_checks.__file__).parent


def refused(constant):
    raise ValueError(f"{constant} is no JSON")


REPORT = json.loads((FOLDER / "report.json").read_text(encoding="utf-8"), parse_constant=refused)
RECORDED = {entry["id"]: entry for entry in REPORT["checks"]}
CHECKS = {check.id: check for check in all_checks()}


def test_the_record_is_of_all_checks_and_a_full_run():
    assert REPORT["run"]["mode"] == "full"
    assert list(RECORDED) == list(CHECKS)
    assert REPORT["run"]["verdicts"] == {"holds": len(CHECKS), "fails": 0, "inconclusive": 0}
    assert {"jax", "numpy", "python", "kernelprop"} <= set(REPORT["run"]["versions"])


def test_ids_and_words_are_those_of_the_checks():
    assert Counter(check.id for check in all_checks()).most_common(1)[0][1] == 1
    for name, check in CHECKS.items():
        for field in ("statement", "formula", "source", "settings", "estimator", "control"):
            assert RECORDED[name][field] == getattr(check, field), (name, field)
        assert RECORDED[name]["tolerance"] == check.tolerance.in_words(), name


@pytest.mark.parametrize("name", CHECKS)
def test_every_mutation_of_every_prediction_turns_its_check_red(name):
    """The stored measurements are judged again with one number of the prediction moved by the stated resolution."""
    found, tolerance = record.evidence_of(RECORDED[name]), CHECKS[name].tolerance
    verdict = judge(found, tolerance)
    assert verdict.name == HOLDS == RECORDED[name]["verdict"]
    assert verdict.control_rejected
    survived = [label for label, moved in mutations(found, tolerance) if judge(moved, tolerance).name == HOLDS]
    assert not survived


def test_the_family_is_as_large_as_it_says():
    statistical = [
        name
        for name, check in CHECKS.items()
        if isinstance(check.tolerance, Statistical | Rate) and RECORDED[name]["draws"]
    ]
    count = sum(len(RECORDED[name]["measured"]) for name in statistical)
    assert REPORT["run"]["comparisons"] == count <= family.COMPARISONS
    # What was drawn has a seed.
    assert all(RECORDED[name]["seed"] is not None for name in statistical)


def test_the_statistical_checks_scatter_as_chance_does():
    """Entries with errors of their own: their standard scores are neither wider than chance nor suspiciously narrow."""
    scores = []
    for name, check in CHECKS.items():
        if isinstance(check.tolerance, Statistical):
            found = record.evidence_of(RECORDED[name])
            assert found.stderr is not None
            drawn = found.stderr > 1e-6 * np.maximum(np.abs(found.measured), 1e-12)
            scores += list(((found.measured - found.prediction) / np.maximum(found.stderr, 1e-300))[drawn])
    # Entries of one check share their draws, so that the spread of spreads is wider than 1/√(2n).
    assert 0.6 < np.std(scores) < 1.6
    assert abs(np.mean(scores)) < 0.6


def test_the_page_and_the_pictures_belong_to_the_record():
    page = (FOLDER / "REPORT.md").read_text(encoding="utf-8")
    for name, entry in RECORDED.items():
        assert f"### {name}\n" in page
        for ending in ("svg", "png"):
            assert (FOLDER / "plots" / f"{name}.{ending}").is_file() == (entry["plot"] is not None), name
    assert f"{len(CHECKS)} hold, 0 fail, 0 are inconclusive" in page
