"""``kernelprop simulate``: sample networks of finite width and measure them."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kernelprop.cli.options import option, takes_options
from kernelprop.cli.results import OutputOptions, print_lines, write_numbers
from kernelprop.cli.sampling import NETWORKS, SamplingOptions, leave_if, sampling
from kernelprop.cli.voice import Voice
from kernelprop.diagnosis.collapse import unless_rounding

if TYPE_CHECKING:
    from rich.console import Console

    from kernelprop.finite.ensemble import Ensemble

NAMES = ("ensemble.npz", "ensemble.csv", "ensemble-gradients.csv", "ensemble.json", "ensemble.png")


@takes_options
def simulate(
    file: Annotated[Path, typer.Argument(help="A description (.toml), or a result that has one (.npz).")],
    *,
    width: Annotated[int, option(NETWORKS, "Width d of the networks (256).", "d")] = 256,
    draws: Annotated[int, option(NETWORKS, "Independent networks (32).", "N")] = 32,
    checkpoint: Annotated[
        Path | None, option(NETWORKS, "File that holds the draws done; one that exists is gone on with.", "FILE")
    ] = None,
    options: SamplingOptions,
    output: OutputOptions,
) -> None:
    """Sample networks of finite width: kernels, observables and gradient norms, with standard errors.

    Every draw has new weights and a new input with the given kernel. Ctrl-C
    keeps the draws that are done (exit code 130); with --checkpoint the same
    command goes on from there.

    [bold]Examples[/]

    kernelprop simulate network.toml
    kernelprop simulate network.toml --width 512 --draws 200 --gradients
    kernelprop simulate network.toml --weights orthogonal --dtype float64
    kernelprop simulate network.toml --draws 10000 --checkpoint draws.npz
    """
    from kernelprop.cli.described import read_file
    from kernelprop.cli.output import check_folder, fill
    from kernelprop.finite.simulation import simulate

    check_folder(output.out)
    voice = output.voice
    with voice.working("reading"):
        described = read_file(file)
    model = described.model
    with sampling(f"width {width}", voice) as progress:
        ensemble = simulate(
            model,
            described.kernel0,
            width=width,
            draws=draws,
            progress=progress,
            checkpoint=checkpoint,
            **options.of(model),
        )
    with voice.working("writing"):
        written = fill(output.out, lambda folder: _write(ensemble, folder, plots=not output.no_plots), NAMES)
    publish(ensemble, written, voice)
    leave_if(ensemble.draws < draws)


def publish(ensemble: "Ensemble", written: list[Path], voice: Voice) -> None:
    """Print an ensemble as strict JSON or, unless quiet, as tables."""
    voice.answer(lambda: _content(ensemble), lambda stream: _print(ensemble, written, stream))


def draw(ensemble: "Ensemble", folder: Path) -> None:
    """Draw the ensemble's picture into a folder."""
    from kernelprop import plotting

    plotting.save_figure(plotting.measured_profile(ensemble), folder / "ensemble.png")


def _print(ensemble: "Ensemble", written: list[Path], stream: "Console") -> None:
    from kernelprop.cli.columns import print_columns
    from kernelprop.cli.depths import readable_selection

    rows = [
        row | {"mean_correlation": unless_rounding(row["mean_correlation"], ensemble.dtype)} for row in ensemble.table()
    ]
    depths = readable_selection(ensemble.layers)
    print_columns([rows[depth] for depth in depths], stream)
    if ensemble.gradients:
        rows = ensemble.gradient_table()
        print_columns([rows[layer - 1] for layer in dict.fromkeys([1, *depths]) if layer > 0], stream)
    lines = [
        f"{ensemble.draws} networks of width {ensemble.width}, {ensemble.heads} heads of width {ensemble.head_width}, "
        f"{ensemble.dtype}; mean +- standard error",
        *ensemble.notes,
    ]
    if ensemble.gradients:
        lines.append("squared Frobenius norms of the gradients at this width; divided by d^2 they are width-free")
    print_lines(lines, written, stream)


def _write(ensemble: "Ensemble", folder: Path, *, plots: bool) -> None:
    tables = {"ensemble": ensemble.table()}
    if ensemble.gradients:
        tables["ensemble_gradients"] = ensemble.gradient_table()
    write_numbers(folder, "ensemble", ensemble, _content(ensemble), **tables)
    if plots:
        draw(ensemble, folder)


def _content(ensemble: "Ensemble") -> dict[str, Any]:
    told = ("width", "heads", "head_width", "draws", "dtype", "notes")
    content: dict[str, Any] = {"format": "kernelprop ensemble"}
    content |= {name: getattr(ensemble, name) for name in told}
    content["rows"] = ensemble.table()
    if ensemble.gradients:
        content["gradients"] = ensemble.gradient_table()
    return content
