"""What every command does alike: help with examples, speed, completion, JSON, quiet, no colours but on a terminal."""

import os
import subprocess
import sys

import pytest

from kernelprop.cli import main
from kernelprop.cli.app import app
from kernelprop.cli.console import console
from kernelprop.cli.progress import stages
from kernelprop.cli.voice import Voice, strict_json

COMMANDS = [command.callback.__name__ for command in app.registered_commands]
HEAVY = ("jax", "numpy", "scipy", "matplotlib", "equinox")


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_every_command_has_examples(capsys, name):
    assert main([name, "--help"]) == 0
    printed = capsys.readouterr().out
    examples = [line.strip() for line in printed.splitlines() if line.strip().startswith("kernelprop ")]
    assert len(examples) >= 2
    assert all(len(line) < 79 for line in examples)


@pytest.mark.slow  # a process for every try
def test_help_of_every_command_loads_nothing_heavy_and_takes_under_half_a_second():
    """Processor time, which other processes don't lengthen; the best of three for each command."""
    program = (
        "import sys\nfrom kernelprop.cli import main\n"
        f"assert main([*sys.argv[1:], '--help']) == 0\n"
        f"assert not set(sys.modules) & set({HEAVY}), set(sys.modules) & set({HEAVY})\n"
        "import resource\nused = resource.getrusage(resource.RUSAGE_SELF)\n"
        "print(used.ru_utime + used.ru_stime, file=sys.stderr)"
    )

    def seconds(name):
        ran = subprocess.run([sys.executable, "-c", program, name], capture_output=True, text=True)
        assert ran.returncode == 0, ran.stderr
        return float(ran.stderr)

    for name in COMMANDS:
        assert min(seconds(name) for _ in range(3)) < 0.5, name


@pytest.mark.parametrize(("words", "wanted"), [("kernelprop rep", "report"), ("kernelprop report --co", "--cotangent")])
def test_the_shell_completes_commands_and_options(words, wanted):
    environment = os.environ | {
        "_KERNELPROP_COMPLETE": "complete_bash",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split()) - 1),
    }
    ran = subprocess.run([sys.executable, "-m", "kernelprop"], env=environment, capture_output=True, text=True)
    assert wanted in ran.stdout.split()


def test_completion_can_be_shown():
    environment = os.environ | {"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    ran = subprocess.run(
        [sys.executable, "-m", "kernelprop", "--show-completion", "bash"],
        env=environment,
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0
    assert "_KERNELPROP_COMPLETE" in ran.stdout


def test_json_speaks_even_where_all_else_is_quiet(capsys):
    Voice(json=True, quiet=True).answer(lambda: {"a": float("nan")}, lambda stream: stream.print("no"))
    assert capsys.readouterr().out == '{\n "a": null\n}\n'
    Voice(quiet=True).answer(lambda: {}, lambda stream: stream.print("no"))
    assert capsys.readouterr().out == ""
    Voice().answer(lambda: {}, lambda stream: stream.print("yes"))
    assert capsys.readouterr().out == "yes\n"


def test_json_is_strict_at_any_depth():
    assert strict_json({"a": ({"b": [float("inf")]},)}) == '{\n "a": [\n  {\n   "b": [\n    "inf"\n   ]\n  }\n ]\n}'


def test_there_are_no_colours_but_on_a_terminal(capsys):
    console().print("plain", style="bold red")
    assert capsys.readouterr().out == "plain\n"


def test_stages_are_told_once_they_take_a_while(capsys, monkeypatch):
    import time

    with stages("computing") as tell:
        tell("at once")
    assert capsys.readouterr().err == ""
    monkeypatch.setattr("kernelprop.cli.progress.PATIENCE", 0.01)
    with stages("computing") as tell:
        tell("first")
        time.sleep(0.2)
        tell("second")
    with stages("computing", quiet=True) as tell:
        tell("silent")
        time.sleep(0.1)
    assert capsys.readouterr().err == "computing: first ...\ncomputing: second ...\n"


def test_design_and_describe_speak_json(command):
    ran = command("design --length 4 --depth 2 --activation none --json")
    assert (ran.code, ran.err) == (0, "")
    assert ran.table["kernels"][1]["kernel"] == "prescribed end"
    assert command("design --length 4 --depth 2 --activation none --quiet")[:2] == (0, "")
    ran = command("describe --attention espa --length 4 --toml --json")
    assert ran.table["toml"].startswith("[attention]")
    assert ran.table["words"].startswith("1 block")
