"""THEORY.md and the checks name each other."""

import re
from pathlib import Path

import paper_checks
from paper_checks.registry import all_checks

PAGE = (Path(paper_checks.__file__).parent / "THEORY.md").read_text(encoding="utf-8")
SOURCES = "he2023|noci2022|dong2021|whole_networks|symbolic"
NAMED = re.findall(rf"`((?:{SOURCES})\.[^`]+)`", PAGE)


def test_every_check_is_named_and_nothing_else():
    assert set(NAMED) == {check.id for check in all_checks()}


def test_a_check_is_named_outside_code_spans_nowhere():
    """Else a misspelt one would go unseen."""
    assert len(re.findall(rf"\b(?:{SOURCES})\.[a-z]", PAGE)) == len(NAMED)
