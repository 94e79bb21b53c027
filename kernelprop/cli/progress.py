"""A sign of life for what takes longer than a moment."""

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

PATIENCE = 2.0  # seconds


@contextmanager
def sign_of_life(message: str, *, quiet: bool = False) -> Iterator[Callable[[], None]]:
    """Say on stderr what is going on once it has taken two seconds: a spinner on a terminal, else one line.

    Yields what takes the sign away before its time.
    """
    sign = _Sign(message)
    timer = threading.Timer(PATIENCE, sign.show)
    timer.daemon = True
    if not quiet:
        timer.start()
    try:
        yield sign.hide
    finally:
        timer.cancel()
        sign.hide()


@contextmanager
def stages(message: str, *, quiet: bool = False) -> Iterator[Callable[[str], None]]:
    """A sign of life for work in several stages; yields what takes the words for the stage that comes next.

    On a terminal they replace each other; elsewhere each stage that begins once the sign is up gets a line.
    """
    sign = _Sign(message)
    timer = threading.Timer(PATIENCE, sign.show)
    timer.daemon = True
    if not quiet:
        timer.start()
    try:
        yield lambda stage: sign.say(f"{message}: {stage}")
    finally:
        timer.cancel()
        sign.hide()


class _Sign:
    """Shown from the timer's thread, hidden from the caller's: whichever comes second sees the other."""

    def __init__(self, message: str) -> None:
        self._message = message
        self._lock = threading.Lock()
        self._over = False
        self._shown = None
        self._task: Any = None
        self._up = False

    def say(self, message: str) -> None:
        """Change the words."""
        with self._lock:
            self._message = message
            if self._shown is not None:
                self._shown.update(self._task, description=message)
            elif self._up and not self._over:
                print(f"{message} ...", file=sys.stderr, flush=True)

    def show(self) -> None:
        with self._lock:
            if self._over:
                return
            self._up = True
            if not sys.stderr.isatty():
                print(f"{self._message} ...", file=sys.stderr, flush=True)
                return
            from rich.console import Console
            from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

            columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
            self._shown = Progress(*columns, console=Console(stderr=True), transient=True)
            self._task = self._shown.add_task(self._message)
            self._shown.start()

    def hide(self) -> None:
        with self._lock:
            self._over = True
            if self._shown is not None:
                self._shown.stop()
