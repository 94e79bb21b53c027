"""``python -m paper_checks [--quick] [--only ID] [--output DIR]``: run the checks, print and write the report."""

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from paper_checks import record, registry, report, terminal
from paper_checks.effort import Effort
from paper_checks.run import passed, run


def main(arguments: Sequence[str] | None = None) -> int:
    """Return 0 if everything holds, 1 if something fails or is inconclusive, 2 for bad input."""
    options = _parser().parse_args(arguments)
    folder = _folder(options)
    try:
        checks = registry.chosen(options.only, options.quick)
        if folder is not None and not folder.is_dir():
            raise ValueError(f"--output {folder}: is not a folder")
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    if options.list:
        print("\n".join(f"{check.id}: {check.statement}" for check in checks))
        return 0
    effort, started = Effort(options.quick), time.perf_counter()
    outcomes = run(checks, effort, terminal.progress)
    terminal.show(outcomes)
    if folder is not None:
        top = record.header(outcomes, effort, time.perf_counter() - started)
        report.draw_plots(outcomes, folder)
        report.write(folder / "REPORT.md", top, outcomes)
        record.write(folder / "report.json", top, outcomes)
        print(f"wrote {folder / 'REPORT.md'}, report.json and plots/")
    return 0 if passed(outcomes) else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m paper_checks", description="Check the papers' statements.")
    parser.add_argument("--quick", action="store_true", help="the quick set, with fewer draws: under two minutes")
    parser.add_argument("--only", action="append", default=[], metavar="ID", help="one check or source; repeatable")
    parser.add_argument("--output", metavar="DIR", help="the existing folder for REPORT.md, report.json, plots/")
    parser.add_argument("--list", action="store_true", help="print the checks and what they state, and run none")
    return parser


def _folder(options: argparse.Namespace) -> Path | None:
    """The full run of everything is the recorded one; parts of it are written where they are asked for only."""
    if options.output is not None:
        return Path(options.output)
    return None if options.quick or options.only else Path(__file__).parent


if __name__ == "__main__":
    sys.exit(main())
