"""``python -m analysis NAME``: answer studies and write their records.

A record that is there is not computed again, and a study that was stopped goes on where it was.

examples:
  python -m analysis --list
  python -m analysis rank_collapse
  python -m analysis rank_collapse --set depth=48 --set length=64
  python -m analysis token_mismatch --input essay.txt
  python -m analysis trainability --input network.toml
  python -m analysis all --jobs 2
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from analysis.catalogue import NAMES, kind_of
from analysis.fields import asked
from analysis.records import FOLDER
from analysis.running import Report, run
from analysis.study import is_recorded


def main(words: Sequence[str] | None = None) -> int:
    """Run what is asked for; 2 for what can't be, with one line."""
    options = _parser().parse_args(words)
    try:
        if options.list or not options.name:
            return _list(options.records)
        if options.jobs < 1:
            raise ValueError(f"--jobs: {options.jobs} is not positive")
        for study in _chosen(options):
            with _bar(study.name, options.quiet) as progress:
                files = run(study, options.records, jobs=options.jobs, again=options.again, progress=progress)
            print("\n".join(map(str, files)))
    except (ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("stopped; finished points are kept, and the same command goes on", file=sys.stderr)
        return 130
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m analysis", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("name", nargs="*", help="studies, or all")
    parser.add_argument("--list", action="store_true", help="what there is, and which records are there")
    parser.add_argument("--quick", action="store_true", help="at sizes of seconds")
    parser.add_argument("--set", action="append", default=[], metavar="FIELD=VALUE", help="change a field of the study")
    parser.add_argument("--input", type=Path, metavar="FILE", help="a text, or a description, for studies that take it")
    parser.add_argument("--jobs", type=int, default=1, help="points at the same time")
    parser.add_argument("--again", action="store_true", help="compute what has been recorded before")
    parser.add_argument("--quiet", action="store_true", help="no progress")
    parser.add_argument("--records", type=Path, default=FOLDER, help="the folder of the records")
    return parser


def _chosen(options: argparse.Namespace) -> list[Any]:
    names = NAMES if options.name == ["all"] else options.name
    kinds = [kind_of(name) for name in names]
    return [asked(kind, options.input, options.quick, options.set) for kind in kinds]


def _list(records: Path) -> int:
    for name in NAMES:
        study = kind_of(name)()
        state = "recorded" if is_recorded(study, records) else "no record"
        print(f"{name:<22}{state:<11}{len(study.points()):>3} points  {study.question}")
    return 0


@contextmanager
def _bar(name: str, quiet: bool) -> Iterator[Report | None]:
    """A bar on a terminal; elsewhere nothing but the files' names."""
    if quiet:
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task(name, total=None)
        yield lambda done, total, point: shown.update(
            task, completed=done, total=total, description=f"{name} {point}".rstrip()
        )


if __name__ == "__main__":
    sys.exit(main())
