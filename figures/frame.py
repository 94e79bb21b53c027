"""What every figure's script does beside drawing: find its record, write its files, say what is wrong in a line."""

import argparse
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from analysis.catalogue import kind_of
from analysis.fields import asked
from analysis.records import FOLDER
from analysis.study import Found, read
from kernelprop.plotting.saving import save_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

HERE = Path(__file__).parent
ENDINGS = ("png", "svg")

Draw = Callable[[Found], "Figure"]


def keep(figure: "Figure", name: str, folder: Path = HERE) -> list[Path]:
    """Write a figure as PNG and SVG."""
    files = [folder / f"{name}.{ending}" for ending in ENDINGS]
    for file in files:
        save_figure(figure, file)
    return files


def draw_record(name: str, records: Path = FOLDER, folder: Path = HERE, study: Any = None) -> list[Path]:
    """Draw the figure of a study, by default of its usual record.

    Raises:
        ValueError: where the record is missing, with the command that makes it.
    """
    found = read(kind_of(name)() if study is None else study, records)
    return keep(import_module(f"figures.{name}").draw(found), name, folder)


def command(name: str, words: Sequence[str] | None = None) -> int:
    """``python -m figures.NAME``: 2 for a record that is missing and for bad input, with one line."""
    parser = argparse.ArgumentParser(prog=f"python -m figures.{name}")
    parser.add_argument("--quick", action="store_true", help="from the record of --quick")
    parser.add_argument("--set", action="append", default=[], metavar="FIELD=VALUE", help="from a record so made")
    parser.add_argument("--input", type=Path, metavar="FILE", help="from the record of this file")
    parser.add_argument("--records", type=Path, default=FOLDER, help="the folder of the records")
    parser.add_argument("--out", type=Path, help="the folder of the figure; this package, or for another record here")
    options = parser.parse_args(words)
    try:
        study = asked(kind_of(name), options.input, options.quick, options.set)
        usual = study == kind_of(name)()
        files = draw_record(name, options.records, options.out or (HERE if usual else Path()), study)
    except (ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print("\n".join(map(str, files)))
    return 0
