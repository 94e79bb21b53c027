"""The command as the shell starts it: fast help, no display, signals, pipes, colours."""

import os
import re
import signal
import subprocess
import sys
import time

import pytest

import kernelprop
from kernelprop.cli import main
from kernelprop.cli.console import complain
from kernelprop.cli.progress import sign_of_life

COMMAND = [sys.executable, "-m", "kernelprop"]
HEAVY = ("jax", "scipy", "matplotlib", "equinox")


def test_help_is_fast_and_loads_no_jax():
    program = (
        "import sys, time; start = time.perf_counter()\n"
        "from kernelprop.cli import main\n"
        "codes = [main(a) for a in (['--help'], ['evolve', '--help'], ['show', '--help'], ['--version'], [])]\n"
        "took = time.perf_counter() - start\n"
        f"print(codes, sorted(set(sys.modules) & set({HEAVY})), took, file=sys.stderr)"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    codes, loaded, took = re.fullmatch(r"(\[.*?\]) (\[.*?\]) (\S+)\n", ran.stderr).groups()
    assert (codes, loaded) == ("[0, 0, 0, 0, 0]", "[]")
    assert float(took) < 2.0  # five pages of help; one takes about 0.2 s on an idle machine


@pytest.mark.parametrize("arguments", ["", "evolve", "show"])
def test_help_has_examples_that_fit_a_terminal(capsys, arguments):
    assert main([*arguments.split(), "--help"]) == 0
    examples = [line.strip() for line in capsys.readouterr().out.splitlines() if line.startswith(" kernelprop ")]
    assert len(examples) >= 2
    assert all(len(line) < 79 for line in examples)


def test_version(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"kernelprop {kernelprop.__version__}\n"


def test_it_works_without_a_display_and_with_a_backend_that_wants_one(tmp_path):
    """Case 66, in a process of its own: images written, exit 0."""
    environment = {name: value for name, value in os.environ.items() if name not in ("DISPLAY", "WAYLAND_DISPLAY")}
    arguments = ["evolve", "--attention", "uniform", "--length", "4", "--causal", "--observables", "all"]
    ran = subprocess.run(
        [*COMMAND, *arguments], cwd=tmp_path, env=environment | {"MPLBACKEND": "TkAgg"}, capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr
    assert "Traceback" not in ran.stderr
    assert "\x1b" not in ran.stdout  # no colours but on a terminal
    assert len(list((tmp_path / "kernelprop-output").glob("*.png"))) == 3


@pytest.mark.skipif(os.name == "nt", reason="signals differ")
@pytest.mark.skipif(signal.getsignal(signal.SIGINT) == signal.SIG_IGN, reason="processes that start here ignore Ctrl-C")
def test_ctrl_c_ends_a_long_computation_at_once(tmp_path):
    arguments = ["evolve", "--attention", "uniform", "--length", "1500", "--depth", "100000", "--keep", "last"]
    with subprocess.Popen([*COMMAND, *arguments], cwd=tmp_path, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        # On a busy machine reading takes long enough to be told of too.
        said = next(line for line in process.stderr if not line.startswith("reading"))
        if "propagating" not in said:
            process.kill()
        assert "propagating" in said
        process.send_signal(signal.SIGINT)
        start = time.monotonic()
        try:
            _, rest = process.communicate(timeout=60)
        finally:
            process.kill()
        assert time.monotonic() - start < 10
        assert (process.returncode, rest) == (130, "interrupted: by Ctrl-C\n")
    assert list(tmp_path.iterdir()) == []


def test_a_reader_who_leaves_early_ends_it_without_a_word():
    """As ``kernelprop … | head -1`` does."""
    read, write = os.pipe()
    os.close(read)
    ran = subprocess.run([*COMMAND, "--version"], stdout=write, stderr=subprocess.PIPE, text=True)
    os.close(write)
    assert (ran.returncode, ran.stderr) == (1, "")


def test_errors_are_not_broken_at_the_edge_of_a_narrow_terminal(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "20")
    complain("a message longer than twenty columns [in brackets]")
    assert capsys.readouterr().err == "error: a message longer than twenty columns [in brackets]\n"


def test_a_sign_of_life_appears_only_after_a_while(capsys, monkeypatch):
    with sign_of_life("quick"):
        pass
    assert capsys.readouterr().err == ""
    monkeypatch.setattr("kernelprop.cli.progress.PATIENCE", 0.01)
    with sign_of_life("slow"):
        time.sleep(0.2)
    with sign_of_life("silent", quiet=True):
        time.sleep(0.1)
    assert capsys.readouterr().err == "slow ...\n"


def test_a_terminal_gets_a_spinner_and_its_cursor_back(monkeypatch):
    import io

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("kernelprop.cli.progress.PATIENCE", 0.01)
    with sign_of_life("slow"):
        time.sleep(0.3)
    assert "slow" in terminal.getvalue()
    assert terminal.getvalue().rindex("\x1b[?25h") > terminal.getvalue().rindex("\x1b[?25l")
