"""The README's code runs, and what it shows is what comes out."""

import json
import re
import shlex
from pathlib import Path

import pytest

import kernelprop as kp
from kernelprop.cli import main
from kernelprop.descriptions import attention, blocks, inputs

README = Path(__file__).parents[1] / "README.md"
TEXT = README.read_text(encoding="utf-8")


def code(language):
    return re.findall(rf"^```{language}\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)


def commands():
    """The README's calls of the command, without what installs it."""
    words = [part.strip() for block in code("sh") for line in block.splitlines() for part in line.split("&&")]
    return [part.removeprefix(".venv/bin/") for part in words if re.match(r"(\.venv/bin/)?kernelprop ", part)]


@pytest.mark.parametrize("number", range(len(code("python"))))
def test_python_blocks_run(number, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(compile(code("python")[number], f"README.md, Python block {number + 1}", "exec"), {})


def test_the_python_example_has_five_lines():
    assert len([line for line in code("python")[0].splitlines() if line]) == 5


@pytest.mark.slow  # every command in a process of its own
def test_shell_commands_run_and_print_what_the_readme_shows(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert len(commands()) >= 5
    printed = []
    for command in commands():
        words, _, redirected = command.partition(" > ")
        arguments = shlex.split(words)[1:]
        plots = ["--no-plots"] if arguments[0] in ("evolve", "gradients", "simulate", "compare", "show") else []
        assert main(arguments + plots) == 0, command
        printed.append(capsys.readouterr().out)
        if redirected:
            Path(redirected).write_text(printed[-1], encoding="utf-8")
    trained = json.loads(Path("kernelprop-output/training.json").read_text(encoding="utf-8"))
    assert trained["final"]["loss"] == pytest.approx(2.0, abs=0.2)
    table = [line.split() for line in printed[0].splitlines()]
    shown = [line.rstrip("…").split() for line in code("text")[0].splitlines()]
    for line in shown:
        assert any(line == other[: len(line)] for other in table), line


def documented_keys():
    """What the README's table names for every table and kind of a description."""
    found, table = {}, ""
    for row in re.findall(r"^\|(.*)\|$", TEXT, re.MULTILINE):
        cells = [re.findall(r"`\[?(\w+)", cell) for cell in row.split("|")]
        if len(cells) == 3:
            table = cells[0][0] if cells[0] else table
            for kind in cells[1] or [""]:
                found[table, kind] = set(cells[2])
    return found


def test_every_key_of_a_description_is_in_the_table():
    found = documented_keys()
    around = found["attention", ""]
    assert around == {"kind", "length", "depth", "mask", "mix", "copies"}
    inherited = {"random_softmax": "softmax", "shaped": "random_softmax"}
    for kind, entry in attention.KINDS.items():
        named, base = found["attention", kind], kind
        while base in inherited:
            base = inherited[base]
            named = (named - {base}) | found["attention", base]
        assert named | around >= set(entry.entries), kind
        assert named <= set(entry.entries), kind
    for table, kinds in (("positions", blocks.POSITIONS), ("input", inputs.KINDS), ("bias", attention._BIASES)):
        for kind, entry in kinds.items():
            assert found[table, kind] == set(entry.entries), (table, kind)
    assert {table for table, _ in found} >= {"mlp", "activation", "residual", "norm", "gains", "rotary", "mix"}


def test_every_name_and_file_that_the_readme_names_exists():
    for name in set(re.findall(r"`kp\.([\w.]+)", TEXT)):
        thing = kp
        for part in name.split("."):
            thing = getattr(thing, part)
    for path in re.findall(r"\]\(([^)#:]+)\)", TEXT):
        assert (README.parent / path).is_file(), path
