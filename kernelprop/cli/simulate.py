"""``kernelprop simulate``: sample networks of finite width and measure them."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kernelprop.diagnosis.collapse import unless_rounding

if TYPE_CHECKING:
    from kernelprop.finite.ensemble import Ensemble

NAMES = ("ensemble.npz", "ensemble.csv", "ensemble-gradients.csv", "ensemble.json", "ensemble.png")


def simulate(
    file: Annotated[Path, typer.Argument(help="A description (.toml), or a result that has one (.npz).")],
    width: Annotated[int, typer.Option(help="Width d of the networks.")] = 256,
    draws: Annotated[int, typer.Option(help="Independent networks.")] = 32,
    weights: Annotated[
        str, typer.Option(help="Distribution of the weights.", metavar="gaussian|orthogonal|truncated|xavier")
    ] = "gaussian",
    gradients: Annotated[bool, typer.Option("--gradients", help="Also measure every weight's gradient norm.")] = False,
    cotangent: Annotated[
        str, typer.Option(help="Where the loss reads: all positions, the last, or their mean.", metavar="all|last|mean")
    ] = "all",
    heads: Annotated[int | None, typer.Option(help="Heads; the attention's, or 1.", show_default=False)] = None,
    head_width: Annotated[int | None, typer.Option(help="Width of a head; d/heads.", show_default=False)] = None,
    seed: Annotated[int, typer.Option(help="Seed of the draws, 0 to 2^32 - 1.")] = 0,
    dtype: Annotated[str, typer.Option(help="float32 or float64.", metavar="TYPE")] = "float32",
    precision: Annotated[
        str, typer.Option(help="Of products: all digits of the type, or the device's fastest.", metavar="highest|fast")
    ] = "highest",
    checkpoint: Annotated[
        Path | None, typer.Option(help="File that holds the draws done; one that exists is gone on with.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for results and the picture.")] = Path("kernelprop-output"),
    no_plots: Annotated[bool, typer.Option("--no-plots", help="Draw no picture.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print strict JSON instead of the table.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing but errors.")] = False,
) -> None:
    """Sample networks of finite width: kernels, observables and gradient norms, with standard errors.

    Every draw has new weights and a new input with the given kernel. Ctrl-C keeps
    the draws that are done; with --checkpoint the same command goes on from there.

    [bold]Examples[/]

    kernelprop simulate network.toml
    kernelprop simulate network.toml --width 512 --draws 200 --gradients
    kernelprop simulate network.toml --weights orthogonal --dtype float64
    kernelprop simulate network.toml --draws 10000 --checkpoint draws.npz
    """
    from kernelprop.cli.described import read_file
    from kernelprop.cli.draws import draws_done
    from kernelprop.cli.output import check_folder, fill
    from kernelprop.cli.progress import sign_of_life
    from kernelprop.cotangents import resolve
    from kernelprop.finite.simulation import simulate

    check_folder(out)
    silent = quiet or json
    with sign_of_life("reading", quiet=silent):
        described = read_file(file)
    named: Any = precision
    with draws_done(f"width {width}", quiet=silent) as progress:
        ensemble = simulate(
            described.model,
            described.kernel0,
            width=width,
            draws=draws,
            key=seed,
            heads=heads,
            head_width=head_width,
            weights=weights,
            gradients=gradients,
            dtype=dtype,
            precision=named,
            cotangent=resolve(cotangent, described.model.length),
            progress=progress,
            checkpoint=checkpoint,
        )
    with sign_of_life("writing", quiet=silent):
        written = fill(out, lambda folder: _write(ensemble, folder, plots=not no_plots), NAMES)
    publish(ensemble, written, as_text=json, quiet=quiet)


def publish(ensemble: "Ensemble", written: list[Path], *, as_text: bool, quiet: bool) -> None:
    """Print an ensemble as strict JSON or, unless quiet, as tables."""
    import sys

    from kernelprop.cli.columns import print_columns
    from kernelprop.cli.console import console
    from kernelprop.cli.depths import readable_selection

    if as_text:
        sys.stdout.write(_as_json(ensemble) + "\n")
        return
    if quiet:
        return
    stream = console()
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
    if written:
        lines.append(f"written to {written[0].parent}: {', '.join(path.name for path in written)}")
    for line in lines:
        stream.print(line, highlight=False, markup=False, soft_wrap=True)


def draw(ensemble: "Ensemble", folder: Path) -> None:
    """Draw the ensemble's picture into a folder."""
    from kernelprop import plotting

    plotting.save_figure(plotting.measured_profile(ensemble), folder / "ensemble.png")


def _write(ensemble: "Ensemble", folder: Path, *, plots: bool) -> None:
    from kernelprop.cli.columns import as_csv

    ensemble.save(folder / "ensemble.npz")
    (folder / "ensemble.csv").write_text(as_csv(ensemble.table()))
    if ensemble.gradients:
        (folder / "ensemble-gradients.csv").write_text(as_csv(ensemble.gradient_table()))
    (folder / "ensemble.json").write_text(_as_json(ensemble) + "\n")
    if plots:
        draw(ensemble, folder)


def _as_json(ensemble: "Ensemble") -> str:
    import json

    from kernelprop.cli.columns import strict_rows

    content: dict[str, Any] = {
        "format": "kernelprop ensemble",
        "width": ensemble.width,
        "heads": ensemble.heads,
        "head_width": ensemble.head_width,
        "draws": ensemble.draws,
        "dtype": ensemble.dtype,
        "notes": list(ensemble.notes),
        "rows": strict_rows(ensemble.table()),
    }
    if ensemble.gradients:
        content["gradients"] = strict_rows(ensemble.gradient_table())
    return json.dumps(content, allow_nan=False, indent=1)
