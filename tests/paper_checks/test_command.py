"""``python -m paper_checks``: what it prints and writes, its exit codes, and that the checks it runs can fail."""

import json
from dataclasses import replace

import pytest

from paper_checks import __main__ as command
from paper_checks import registry
from paper_checks.check import Check, evidence
from paper_checks.tolerances import Exact

GOOD = Check(
    id="made.up",
    statement="One and one are two.",
    formula="1 + 1 = 2",
    source="arithmetic",
    settings="none",
    estimator="addition",
    tolerance=Exact(),
    control="three",
    measure=lambda effort: evidence([2.0], [3.0], [1.0 + 1.0], labels="sum", finding="it is"),
)


def bad(measured, control=3.0):
    return replace(GOOD, measure=lambda effort: evidence([2.0], [control], [measured], labels="sum"))


@pytest.mark.parametrize(
    ("check", "code", "word"),
    [(GOOD, 0, "holds"), (bad(2.1), 1, "fails"), (bad(float("nan")), 1, "fails"), (bad(2.0, 2.0), 1, "inconclusive")],
)
def test_the_exit_code_and_the_files_tell(check, code, word, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(registry, "all_checks", lambda: (check,))
    assert command.main(["--output", str(tmp_path)]) == code
    printed = capsys.readouterr()
    assert word in printed.out
    assert f"1/1 made.up: {word}" in printed.err
    report = json.loads((tmp_path / "report.json").read_text(), parse_constant=lambda name: pytest.fail(name))
    assert report["run"]["verdicts"][word] == 1
    assert report["checks"][0]["verdict"] == word
    assert "### made.up" in (tmp_path / "REPORT.md").read_text(encoding="utf-8")


def test_part_of_the_checks_writes_nothing_unasked(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(
        registry, "all_checks", lambda: (GOOD, replace(GOOD, id="made.down"), replace(GOOD, id="other.x"))
    )
    monkeypatch.chdir(tmp_path)
    assert command.main(["--only", "made"]) == 0
    printed = capsys.readouterr().out
    assert "made.up" in printed
    assert "made.down" in printed
    assert "other.x" not in printed
    assert "wrote" not in printed
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--only", "nobody.knows"], "--only nobody.knows: no such check; --list names all"),
        (["--only", "dong2021.cubic"], "did you mean dong2021.cubic-law"),
        (["--only", "he2023.softmax-form", "--output", "missing"], "--output missing: is not a folder"),
    ],
)
def test_bad_input_is_one_line_and_code_2(arguments, message, capsys):
    assert command.main(arguments) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_the_list_names_every_check(capsys):
    assert command.main(["--list"]) == 0
    printed = capsys.readouterr().out
    assert all(f"{check.id}: " in printed for check in registry.all_checks())
