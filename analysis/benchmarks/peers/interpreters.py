"""Interpreters for peers that need other versions than this package does."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

VARIABLE = "PEERS_PYTHON"
PACKAGES = ("neural-tangents==0.6.5", "jax==0.5.3", "jaxlib==0.5.3", "dks==0.1.2")
MODULES = {"neural-tangents": "neural_tangents", "dks": "dks.base"}


class Missing(Exception):
    """A peer can't be had on this machine; the message says why."""


def interpreter(named: str | None, folder: Path | None) -> str:
    """An interpreter for the peers: the named one, or one in an environment made in the folder.

    Raises:
        Missing: where there is none and none can be made.
    """
    chosen = named or os.environ.get(VARIABLE)
    if chosen is None and folder is None:
        raise Missing(f"no interpreter: name one by --interpreter or {VARIABLE}, or an --environment to make")
    if chosen is None:
        assert folder is not None
        chosen = str(folder / "bin" / "python")
        if not Path(chosen).exists():
            _made(folder, chosen)
    return chosen


def without(python: str) -> dict[str, str]:
    """The peers that this interpreter can't import, and what it says."""
    failures = {name: _failure([python, "-I", "-c", f"import {module}"]) for name, module in MODULES.items()}
    return {name: f"{python}: {said}" for name, said in failures.items() if said is not None}


def _made(folder: Path, python: str) -> None:
    for command in ([sys.executable, "-m", "venv", str(folder)], [python, "-m", "pip", "install", "-q", *PACKAGES]):
        said = _failure(command)
        if said is not None:
            raise Missing(f"{' '.join(command)}: {said}")


def _failure(command: Sequence[str]) -> str | None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        return str(error)
    return None if done.returncode == 0 else (done.stderr.strip().splitlines() or ["failed"])[-1]
