"""What the commands share that write one result: where it goes, its files, and the lines below its table."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from kernelprop.cli.options import option, switch
from kernelprop.cli.voice import Voice, say, strict_json

if TYPE_CHECKING:
    from rich.console import Console

OUTPUT = "Output"


@dataclass(frozen=True, kw_only=True)
class OutputOptions:
    """Where results go and how they are told."""

    out: Annotated[Path, option(OUTPUT, "Folder for results and the picture (kernelprop-output).", "FOLDER")] = Path(
        "kernelprop-output"
    )
    no_plots: Annotated[bool, switch(OUTPUT, "Draw no picture.", "--no-plots")] = False
    json: Annotated[bool, switch(OUTPUT, "Print strict JSON instead of the table.", "--json")] = False
    quiet: Annotated[bool, switch(OUTPUT, "Print nothing but errors.", "--quiet")] = False

    @property
    def voice(self) -> Voice:
        """How the command speaks."""
        return Voice(self.json, self.quiet)


def write_numbers(folder: Path, name: str, result: Any, content: Mapping[str, Any], **tables: Sequence[Any]) -> None:
    """Write a result whole (``.npz``), its content (``.json``), and tables by name (``.csv``)."""
    from kernelprop.cli.columns import as_csv

    result.save(folder / f"{name}.npz")
    (folder / f"{name}.json").write_text(strict_json(content) + "\n")
    for table, rows in tables.items():
        (folder / f"{table.replace('_', '-')}.csv").write_text(as_csv(rows))


def print_lines(lines: Sequence[str], written: list[Path], stream: "Console") -> None:
    """Print what is said below a table, and what was written."""
    files = ", ".join(path.name for path in written)
    for line in (*lines, *([f"written to {written[0].parent}: {files}"] if written else [])):
        say(stream, line)
