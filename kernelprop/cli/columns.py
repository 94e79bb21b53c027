"""Rows of numbers as a table that no terminal cuts."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console


def print_columns(rows: Sequence[Mapping[str, Any]], console: "Console") -> None:
    """Print rows of one form, the keys as titles, a value and its ``…_stderr`` in one cell."""
    from rich import box
    from rich.table import Table

    names = [name for name in rows[0] if not name.endswith("_stderr")]
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    for name in names:
        table.add_column(name.replace("_", "\n"), justify="left" if name == "name" else "right", no_wrap=True)
    for row in rows:
        table.add_row(*(_cell(row, name) for name in names))
    width = console.measure(table, options=console.options.update(max_width=10_000)).maximum
    terminal, console.width = console.width, max(console.width, width)
    console.print(table, crop=False)
    console.width = terminal


def as_csv(rows: Sequence[Mapping[str, Any]]) -> str:
    """The same rows as text with commas, every digit kept."""
    import csv
    import io

    names = list(dict.fromkeys(name for row in rows for name in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, names, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def strict_rows(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The same rows for strict JSON: NaN is None, infinity ``"inf"``."""
    from kernelprop.tables import strict

    return [{name: strict(value) for name, value in row.items()} for row in rows]


def _cell(row: Mapping[str, Any], name: str) -> str:
    value = row.get(name)
    if value is None:
        return ""
    if isinstance(value, str | int):
        return str(value)
    error = row.get(f"{name}_stderr")
    return f"{value:.6g}" + ("" if error is None else f" +- {error:.2g}")
