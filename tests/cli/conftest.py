"""Each test of the command runs in a folder of its own, in this process."""

import json
import shlex
from typing import NamedTuple

import numpy as np
import pytest

from kernelprop.cli import main


class Ran(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def table(self) -> dict:
        """What ``--json`` printed, read by a parser that takes strict JSON only."""
        return strict_json(self.out)


def strict_json(text):
    def refuse(name):
        raise AssertionError(f"{name} is no JSON")

    return json.loads(text, parse_constant=refuse)


@pytest.fixture
def command(tmp_path, monkeypatch, capsys):
    """Run ``kernelprop …`` in an empty folder and return its exit code and what it printed."""
    monkeypatch.chdir(tmp_path)

    def run(arguments):
        code = main(shlex.split(arguments))
        return Ran(code, *capsys.readouterr())

    return run


@pytest.fixture
def matrices(tmp_path):
    """Small arrays in files: three positions, uniform attention, a correlated kernel."""
    np.save(tmp_path / "A.npy", np.full((3, 3), 1 / 3))
    np.save(tmp_path / "K.npy", 0.5 * np.eye(3) + 0.5)
    return tmp_path
