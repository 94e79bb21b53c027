"""The table on the terminal, and the signs of progress."""

import sys
from collections.abc import Sequence
from typing import Any

from paper_checks import numerals
from paper_checks.check import Check
from paper_checks.run import Outcome

COLOURS = {"holds": "green", "fails": "bold red", "inconclusive": "yellow"}
WIDE = 150


def console() -> Any:
    """A console on stdout; wide enough for every column where nobody looks."""
    from rich.console import Console

    return Console(width=None if sys.stdout.isatty() else WIDE)


def show(outcomes: Sequence[Outcome]) -> None:
    """Print one row a check, then the findings."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, padding=(0, 1))
    table.add_column("check", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    table.add_column("predicted", justify="right", no_wrap=True)
    table.add_column("measured", justify="right", no_wrap=True)
    table.add_column("off by", justify="right", no_wrap=True)
    table.add_column("entries", justify="right")
    table.add_column("control", no_wrap=True)
    for one in outcomes:
        verdict = one.verdict
        table.add_row(
            one.check.id,
            Text(verdict.name, COLOURS[verdict.name]),
            numerals.predicted(one),
            numerals.measured(one),
            numerals.deviation(one),
            str(len(one.found.measured)),
            "rejected" if verdict.control_rejected else "accepted",
        )
    screen = console()
    screen.print(table)
    for one in outcomes:
        if one.verdict.reason:
            screen.print(Text(f"{one.check.id}: {one.verdict.reason}", COLOURS[one.verdict.name]))
    for one in outcomes:
        if one.found.finding:
            screen.print(Text.assemble((f"{one.check.id}: ", "bold"), one.found.finding))


def progress(done: int, total: int, what: Outcome | Check) -> None:
    """One line on stderr: on a terminal the check at hand, else each finished one."""
    if sys.stderr.isatty():
        name = what.id if isinstance(what, Check) else ""
        print(f"\r\x1b[K{done}/{total} {name}", end="" if done < total else "\r\x1b[K", file=sys.stderr, flush=True)
    elif isinstance(what, Outcome):
        line = f"{done}/{total} {what.check.id}: {what.verdict.name} ({what.seconds:.1f} s)"
        print(line, file=sys.stderr, flush=True)
