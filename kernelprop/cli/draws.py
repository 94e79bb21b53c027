"""How far a Monte-Carlo run has come: draws done, time taken, time left."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from kernelprop.cli.progress import PATIENCE

Report = Callable[[int, int, float], None]


@contextmanager
def draws_done(message: str, *, quiet: bool = False) -> Iterator[Report | None]:
    """Yield what ``simulate`` calls after every chunk of draws: a bar on a terminal, else a line now and then."""
    if quiet:
        yield None
    elif sys.stderr.isatty():
        with _bar(message) as report:
            yield report
    else:
        yield _lines(message)


def time_left(done: int, total: int, seconds: float) -> str:
    """Say how long the rest will take, at the pace so far.

    >>> time_left(10, 40, 60.0)
    '10 of 40 draws, 3 min left'
    """
    left = seconds / done * (total - done)
    return f"{done} of {total} draws, " + (f"{left:.0f} s left" if left < 120 else f"{left / 60:.0f} min left")


@contextmanager
def _bar(message: str) -> Iterator[Report]:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(message, total=None)
        yield lambda done, total, _: progress.update(task, completed=done, total=total)


def _lines(message: str) -> Report:
    last = time.monotonic() - PATIENCE

    def report(done: int, total: int, seconds: float) -> None:
        nonlocal last
        if done < total and seconds > PATIENCE and time.monotonic() - last > 5 * PATIENCE:
            last = time.monotonic()
            print(f"{message}: {time_left(done, total, seconds)}", file=sys.stderr, flush=True)

    return report
