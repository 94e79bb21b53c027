"""``python -m figures``: draw all figures, or those named, from their records."""

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from analysis.catalogue import NAMES
from analysis.records import FOLDER
from figures.frame import HERE, draw_record

# Drawn from records of their own kinds.
OTHERS = ("training_studies", "cost_growth")


def main(words: Sequence[str] | None = None) -> int:
    """Draw; 2 where a record is missing, after all others are drawn, with a line for each."""
    parser = argparse.ArgumentParser(prog="python -m figures", description=__doc__)
    parser.add_argument("name", nargs="*", metavar="NAME", help="figures; all if none")
    parser.add_argument("--out", type=Path, default=HERE, help="the folder of the figures")
    options = parser.parse_args(words)
    for name in options.name:
        if name not in (*NAMES, *OTHERS):
            parser.error(f"{name!r}: invalid choice; there are {', '.join((*NAMES, *OTHERS))}")
    try:
        options.out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        parser.error(f"--out: {error}")
    wrong = 0
    for name in options.name or (*NAMES, *OTHERS):
        try:
            files = _other(name, options.out) if name in OTHERS else draw_record(name, FOLDER, options.out)
            print("\n".join(map(str, files)), flush=True)
        except (ValueError, OSError) as error:
            print(f"error: {name}: {error}", file=sys.stderr)
            wrong = 2
    return wrong


def _other(name: str, folder: Path) -> list[Path]:
    return import_module(f"figures.{name}").main(folder=folder)


if __name__ == "__main__":
    sys.exit(main())
