"""Contenders in processes of their own, taking turns, so that a noisy machine disturbs all of them alike."""

import json
import statistics
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import IO, Any, NamedTuple, Self

import numpy as np

HERE = Path(__file__).parent
ANOTHER = 0.9  # of the gain


class Contender(NamedTuple):
    """An interpreter, and the program that it serves."""

    python: str
    program: str


class Serving:
    """A running contender."""

    def __init__(self, contender: Contender, job: Mapping[str, Any]) -> None:
        self._name = f"{contender.program} {job}"
        self._said: IO[str] = tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed on exit
        program = str(HERE / f"{contender.program}.py")
        self._process = subprocess.Popen(
            [contender.python, "-P", str(HERE / "serving.py"), program, json.dumps(job)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._said,
            text=True,
        )
        self._answer()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        with self._process:
            self._process.terminate()
        self._said.close()

    def ask(self, request: str) -> dict[str, float]:
        """Send a request, wait for its answer."""
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # what it said is told by _answer
            print(request, file=self._process.stdin, flush=True)
        return self._answer()

    def _answer(self) -> dict[str, float]:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith("{"):
                return json.loads(line)
        self._said.seek(0)
        raise RuntimeError(f"{self._name} ended: {self._said.read().strip()[-800:]}")


def in_turns(
    contenders: Mapping[str, Contender], job: Mapping[str, Any], repeats: int, alike: Sequence[str]
) -> dict[str, Any]:
    """Seconds, by both clocks, of each contender: its first run, the median of later ones, the first of another gain.

    And the peak of its memory beyond what its imports took; and how far what it found is from what the first
    contender found, over the largest number of that, for those that do the same work (``alike``).
    """
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        serving = {
            name: stack.enter_context(Serving(contender, {**job, "contender": name}))
            for name, contender in contenders.items()
        }
        first = {name: one.ask("run 1") for name, one in serving.items()}
        found = {}
        for number, (name, one) in enumerate(serving.items()):
            one.ask(f"save {folder / f'{number}.npy'}")
            found[name] = np.load(folder / f"{number}.npy")
        again: dict[str, list[dict[str, float]]] = {name: [] for name in serving}
        for _ in range(repeats):
            for name, one in serving.items():
                again[name].append(one.ask("run 1"))
        another = {name: one.ask(f"run {ANOTHER}") for name, one in serving.items()}
        peaks = {name: one.ask("peak")["peak GiB"] for name, one in serving.items()}
    reference = next(iter(found.values()))
    return {
        "building and running, seconds": first,
        "running, seconds": {
            name: {clock: statistics.median(run[clock] for run in runs) for clock in runs[0]}
            for name, runs in again.items()
        },
        "another gain, seconds": another,
        "peak GiB": peaks,
        "difference": {name: float(np.abs(found[name] - reference).max() / np.abs(reference).max()) for name in alike},
    }
