"""What the command prints: a table for people, or strict JSON for programs."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kernelprop.cli.verdict import CRITERION, verdict
from kernelprop.diagnosis.collapse import unless_rounding

if TYPE_CHECKING:
    import numpy as np
    from rich.console import Console

    from kernelprop.results import Evolution

# Batches are printed up to here; the CSV has all of them.
BATCHES = 4
MEASURED = "measured_mean_cosine"
FLOOR = "*"


@dataclass(frozen=True)
class Report:
    """An evolution and, for an example, the mean cosine that was measured on the real network ``(L+1,)``."""

    evolution: "Evolution"
    measured: "np.ndarray | None" = None


def print_report(report: Report, depths: Sequence[int], console: "Console") -> None:
    """Print the table of the chosen depths, the verdict, the notes and the definitions."""
    dtype = report.evolution.kernels.dtype.name
    rows = [
        row | {"mean_correlation": unless_rounding(row["mean_correlation"], dtype)} for row in _rows(report, depths)
    ]
    batches = list(dict.fromkeys(row.get("batch") for row in rows))
    _print_table([row for row in rows if row.get("batch") in batches[:BATCHES]], console)
    if len(batches) > BATCHES:
        console.print(f"... and {len(batches) - BATCHES} more kernels of the batch, in evolution.csv")
    console.print()
    _say(console, verdict(report.evolution), "bold")
    for note in _notes(report):
        _say(console, note)
    console.print()
    for name, definition in _definitions(report.evolution).items():
        _say(console, f"{name.replace('_', ' ')}: {definition}", "dim")


def print_written(files: Sequence[Path], console: "Console") -> None:
    """Say which files are new in the output folder."""
    if files:
        console.print()
        _say(console, f"written to {files[0].parent}: {', '.join(file.name for file in files)}")


def _say(console: "Console", text: str, style: str | None = None) -> None:
    """Print a line as it is: wrapped at words on a terminal, in one piece into a pipe."""
    console.print(text, style=style, highlight=False, markup=False, soft_wrap=not console.is_terminal)


def as_json(report: Report, depths: Sequence[int] | None = None) -> str:
    """The table, verdict and definitions as strict JSON: NaN is ``null``, infinity ``"inf"``."""
    from kernelprop.tables import strict

    evolution = report.evolution
    chosen = range(evolution.layers + 1) if depths is None else depths
    content = {
        "format": "kernelprop table",
        "layers": evolution.layers,
        "positions": evolution.length,
        "verdict": verdict(evolution),
        "notes": [note for note in _notes(report) if not note.startswith(FLOOR)],  # rows have below_floor
        "definitions": _definitions(evolution),
        "rows": [{name: strict(value) for name, value in row.items()} for row in _rows(report, chosen)],
    }
    return json.dumps(content, allow_nan=False, indent=1)


def _rows(report: Report, depths: Sequence[int]) -> list[dict[str, Any]]:
    rows = report.evolution.table(depths)
    if report.measured is not None:
        for row in rows:
            row[MEASURED] = float(report.measured[row["depth"]])
    return rows


def _print_table(rows: list[dict[str, Any]], console: "Console") -> None:
    """Print one table, or two where one is wider than the terminal; no number is ever cut."""
    columns = [column for column in _COLUMNS if column.present(rows[0])]
    tables = [_table(rows, columns)]
    if _width(tables[0], console) > console.width:
        first = [column for column in columns if not column.spectral]
        second = [column for column in columns if column.spectral or column.key in ("batch", "depth")]
        tables = [_table(rows, first)] + ([_table(rows, second)] if len(columns) > len(first) else [])
    terminal = console.width
    for table in tables:
        console.width = max(terminal, _width(table, console))
        console.print(table, crop=False)
    console.width = terminal


def _width(table: Any, console: "Console") -> int:
    return console.measure(table, options=console.options.update(max_width=10_000)).maximum


def _table(rows: list[dict[str, Any]], columns: "list[_Column]") -> Any:
    from rich.table import Table

    table = Table(box=_box(), pad_edge=False, collapse_padding=True)
    for column in columns:
        table.add_column(column.title, justify="right", no_wrap=True)
    for number, row in enumerate(rows):
        last = number + 1 == len(rows) or rows[number + 1].get("batch") != row.get("batch")
        table.add_row(*(column.text(row) for column in columns), end_section=last)
    return table


def _box() -> Any:
    from rich import box

    return box.SIMPLE_HEAD


def _notes(report: Report) -> list[str]:
    import numpy as np

    evolution = report.evolution
    notes = [note for note in evolution.notes if not note.startswith("example: ")]
    if report.measured is not None:
        first, last = report.measured[[0, -1]]
        notes.insert(0, f"the real network, with its residuals, MLPs and norms: mean cosine {first:.4f} to {last:.4f}")
    if evolution.below_floor.any():
        notes.append(f"{FLOOR} a rank residual below what {evolution.kernels.dtype} can tell from 0")
    if evolution.attention_entropy is not None and np.isfinite(evolution.attention_entropy).all():
        first, last = evolution.attention_entropy[[0, -1]]
        most = np.log(evolution.length)
        notes.append(
            f"mean attention entropy {first:.3f} nats in layer 1, {last:.3f} in the last (uniform: {most:.3f})"
        )
    return notes


def _definitions(evolution: "Evolution") -> dict[str, str]:
    from kernelprop.observables import DEFINITIONS

    names = ["mean_correlation", "rank_residual", "participation_ratio"]
    names += [n for n in ("effective_rank", "stable_rank", "eigenvalue_gap") if getattr(evolution, n) is not None]
    return {name: DEFINITIONS[name] for name in names} | {"verdict": CRITERION}


@dataclass(frozen=True)
class _Column:
    title: str
    key: str
    form: str = ".5g"
    spectral: bool = False

    def present(self, row: dict[str, Any]) -> bool:
        return self.key in row

    def text(self, row: dict[str, Any]) -> str:
        import numpy as np

        value = row[self.key]
        if self.key == "diagonal_minimum":
            low, high = (format(row[key], self.form) for key in ("diagonal_minimum", "diagonal_maximum"))
            return low if low == high else f"{low} to {high}"
        if isinstance(value, str | int):
            return str(value)
        floor = FLOOR if self.key == "rank_residual" and row["below_floor"] else ""
        error = row.get(f"{self.key}_stderr")
        spread = "" if error is None else f" +- {error:.2g}"
        return ("undefined" if np.isnan(value) else _unsigned_zero(format(value, self.form))) + spread + floor


def _unsigned_zero(text: str) -> str:
    return text.removeprefix("-") if not text.strip("-0.") else text


_COLUMNS = (
    _Column("kernel", "batch"),
    _Column("depth", "depth"),
    _Column("mean\ncorrelation", "mean_correlation", ".7f"),
    _Column("real\nnetwork", MEASURED, ".7f"),
    _Column("diagonal", "diagonal_minimum", ".4g"),
    _Column("rank\nresidual", "rank_residual", ".4g"),
    _Column("participation\nratio", "participation_ratio"),
    _Column("effective\nrank", "effective_rank", spectral=True),
    _Column("stable\nrank", "stable_rank", spectral=True),
    _Column("eigenvalue\ngap", "eigenvalue_gap", spectral=True),
)
