"""``kernelprop show``: print and redraw a saved result."""

from pathlib import Path
from typing import Annotated

import typer

from kernelprop.cli.console import console
from kernelprop.cli.output import PICTURES, check_folder, fill
from kernelprop.cli.progress import sign_of_life
from kernelprop.cli.report import Report, print_written
from kernelprop.cli.run import mean_cosine, measured_kernels, publish, shown_depths, warn_of


def show(
    file: Annotated[Path, typer.Argument(help="A result that kernelprop wrote (evolution.npz).", show_default=False)],
    depths: Annotated[
        str | None, typer.Option("--show", help="Depths of the table and the heat maps: 0,3,6.", metavar="DEPTHS")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the pictures; the file's own if not given.", metavar="FOLDER")
    ] = None,
    no_plots: Annotated[bool, typer.Option("--no-plots", help="Draw no pictures.", show_default=False)] = False,
    json: Annotated[
        bool, typer.Option("--json", help="Print strict JSON instead of the table.", show_default=False)
    ] = False,
) -> None:
    """Print a saved result and draw its pictures again.

    [bold]Examples[/]

    kernelprop show kernelprop-output/evolution.npz
    kernelprop show kernelprop-output/evolution.npz --show 0,3,6 --out redrawn
    """
    folder = out if out is not None else file.parent
    if not no_plots:
        check_folder(folder)
    with sign_of_life(f"reading {file}", quiet=json):
        report, measured = _read(file)
    shown = shown_depths(depths, report.evolution.layers)
    written: list[Path] = []
    if not no_plots:
        heatmaps = None if depths is None else shown
        with sign_of_life("drawing", quiet=json):
            written = fill(folder, lambda staging: warn_of(staging, report, heatmaps, measured), PICTURES)
    publish(report, shown, json, False)
    if not json:
        print_written(written, console())


def _read(file: Path):
    from kernelprop.results import Evolution, load

    result = load(file)
    if not isinstance(result, Evolution):
        raise ValueError(f"{file}: holds a {type(result).__name__}; show prints the evolution of a kernel")
    measured = measured_kernels(result)
    return Report(result, mean_cosine(measured)), measured
