"""``kernelprop show``: print and redraw a saved result."""

from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from kernelprop.cli.console import console
from kernelprop.cli.output import PICTURES, check_folder, fill
from kernelprop.cli.report import Report, print_written
from kernelprop.cli.run import mean_cosine, measured_kernels, publish, shown_depths, warn_of
from kernelprop.cli.voice import Json, Quiet, Voice

# The module that prints and draws a kind of result, imported when it is met.
PUBLISHERS = {"GradientNorms": "gradients", "Ensemble": "simulate", "Comparison": "compare", "TrainingRun": "train"}


def show(
    file: Annotated[
        Path,
        typer.Argument(help="A result that kernelprop wrote, such as evolution.npz.", show_default=False),
    ],
    depths: Annotated[
        str | None, typer.Option("--show", help="Depths of the table and the heat maps: 0,3,6.", metavar="DEPTHS")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the pictures; the file's own if not given.", metavar="FOLDER")
    ] = None,
    no_plots: Annotated[bool, typer.Option("--no-plots", help="Draw no pictures.", show_default=False)] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Print a saved result and draw its pictures again; a training run has none.

    [bold]Examples[/]

    kernelprop show kernelprop-output/evolution.npz
    kernelprop show kernelprop-output/evolution.npz --show 0,3,6 --out redrawn
    kernelprop show kernelprop-output/gradients.npz
    kernelprop show kernelprop-output/training.npz
    """
    _refuse_folder(file)
    voice = Voice(json, quiet)
    folder = out if out is not None else file.parent
    if not no_plots:
        check_folder(folder)
    with voice.working(f"reading {file}"):
        result, kind = _read(file)
    if kind == "Evolution":
        _show_evolution(result, depths, folder, no_plots, voice)
        return
    if depths is not None:
        raise ValueError(f"--show: {file} holds a {kind}, whose layers are all there in its .csv")
    module = import_module(f"kernelprop.cli.{PUBLISHERS[kind]}")
    written = []
    if not no_plots and hasattr(module, "draw"):  # a training run has no picture
        with voice.working("drawing"):
            written = fill(folder, lambda staging: module.draw(result, staging), ())
    module.publish(result, written, voice)


def _show_evolution(result: Any, depths: str | None, folder: Path, no_plots: bool, voice: Voice) -> None:
    measured = measured_kernels(result)
    report = Report(result, mean_cosine(measured))
    shown = shown_depths(depths, report.evolution.layers)
    written: list[Path] = []
    if not no_plots:
        heatmaps = None if depths is None else shown
        with voice.working("drawing"):
            written = fill(folder, lambda staging: warn_of(staging, report, heatmaps, measured), PICTURES)
    publish(report, shown, voice.json, voice.quiet)
    if not voice.silent:
        print_written(written, console())


def _refuse_folder(file: Path) -> None:
    if not file.is_dir():
        return
    results = sorted(path.name for path in file.glob("*.npz"))
    there = ", ".join(results) if results else "no .npz there"
    raise ValueError(f"{file}: is a folder; show wants the file of a result, such as {file}/evolution.npz ({there})")


def _read(file: Path) -> tuple[Any, str]:
    from kernelprop.results import load

    result = load(file)
    kind = type(result).__name__
    if kind != "Evolution" and kind not in PUBLISHERS:
        raise ValueError(
            f"{file}: holds a {kind}; show prints what evolve, gradients, simulate, compare and train wrote"
        )
    return result, kind
