"""``kernelprop compare``: the infinite-width prediction beside sampled networks of several widths."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kernelprop.diagnosis.collapse import unless_rounding

if TYPE_CHECKING:
    from kernelprop.finite.comparison import Comparison

NAMES = ("comparison.npz", "comparison.csv", "comparison.json", "comparison.png")


def compare(
    file: Annotated[Path, typer.Argument(help="A description (.toml), or a result that has one (.npz).")],
    widths: Annotated[str, typer.Option(help="Widths of the sampled networks, with commas.")] = "64,128,256",
    draws: Annotated[int, typer.Option(help="Independent networks of each width.")] = 64,
    weights: Annotated[
        str, typer.Option(help="Distribution of the weights.", metavar="gaussian|orthogonal|truncated|xavier")
    ] = "gaussian",
    gradients: Annotated[bool, typer.Option("--gradients", help="Also compare every weight's gradient norm.")] = False,
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
    out: Annotated[Path, typer.Option(help="Folder for results and the picture.")] = Path("kernelprop-output"),
    no_plots: Annotated[bool, typer.Option("--no-plots", help="Draw no picture.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print strict JSON instead of the table.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing but errors.")] = False,
) -> None:
    """Does theory describe networks of a width that one can build?

    Beside each prediction stands the mean at the largest width, with the difference
    in standard errors (z), and the limit of the differences at infinite width: a
    finite-width effect falls like 1/d and leaves a limit of zero, an error doesn't.
    Ctrl-C keeps the widths that are done.

    [bold]Examples[/]

    kernelprop compare network.toml
    kernelprop compare network.toml --widths 128,256,512 --draws 200 --gradients
    """
    from kernelprop.cli.described import read_file
    from kernelprop.cli.draws import draws_done
    from kernelprop.cli.output import check_folder, fill
    from kernelprop.cli.progress import sign_of_life
    from kernelprop.cotangents import resolve
    from kernelprop.finite.comparison import compare

    check_folder(out)
    sizes = _sizes(widths)
    silent = quiet or json
    with sign_of_life("reading", quiet=silent):
        described = read_file(file)
    with draws_done(f"widths {widths}", quiet=silent) as progress:
        comparison = compare(
            described.model,
            described.kernel0,
            widths=sizes,
            draws=draws,
            key=seed,
            gradients=gradients,
            cotangent=resolve(cotangent, described.model.length),
            dtype=dtype,
            weights=weights,
            heads=heads,
            head_width=head_width,
            precision=precision,
            progress=progress,
        )
    with sign_of_life("writing", quiet=silent):
        written = fill(out, lambda folder: _write(comparison, folder, plots=not no_plots), NAMES)
    publish(comparison, written, as_text=json, quiet=quiet)


def _sizes(text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise ValueError(f"--widths: whole numbers with commas are wanted, not {text!r}") from None


def publish(comparison: "Comparison", written: list[Path], *, as_text: bool, quiet: bool) -> None:
    """Print a comparison as strict JSON or, unless quiet, as a table of chosen depths and layers."""
    import sys

    from kernelprop.cli.columns import print_columns
    from kernelprop.cli.console import console

    if as_text:
        sys.stdout.write(_as_json(comparison) + "\n")
        return
    if quiet:
        return
    stream = console()
    chosen = _chosen(comparison)
    for kind in ("depth", "layer"):
        # What is zero in theory and in every network (keys, while the queries are) says nothing more.
        rows = [_readable(row) for row in chosen if kind in row and (row["predicted"] or row["measured"])]
        if rows:
            print_columns(rows, stream)
    widths, draws = (", ".join(map(str, values.tolist())) for values in (comparison.widths, comparison.draws))
    lines = [
        f"measured at width {comparison.widths[-1]}; limit: measured minus predicted at infinite width; "
        f"{draws} networks of width {widths}",
        "of kernels and diagonals the entry furthest off is shown, whose z is large by being chosen",
        f"of the other numbers the largest |z| is {_largest(chosen):.2f}" + _of_limits(chosen),
        *comparison.notes,
    ]
    if written:
        lines.append(f"written to {written[0].parent}: {', '.join(path.name for path in written)}")
    for line in lines:
        stream.print(line, highlight=False, markup=False, soft_wrap=True)


def draw(comparison: "Comparison", folder: Path) -> None:
    """Draw the comparison's picture into a folder."""
    from kernelprop import plotting

    plotting.save_figure(plotting.prediction_and_measurement(comparison), folder / "comparison.png")


def _chosen(comparison: "Comparison") -> list[dict[str, Any]]:
    """The rows of readable depths and layers; of matrices and vectors the entries furthest off."""
    from kernelprop.cli.depths import readable_selection

    depths = set(readable_selection(len(comparison.predicted["mean_correlation"]) - 1)) | {1}
    return [row for row in comparison.table() if row.get("depth", row.get("layer")) in depths]


def _readable(row: dict[str, Any]) -> dict[str, Any]:
    """Differences in three digits, which are more than they have, and z in hundredths."""
    three = {name: float(f"{row[name]:.3g}") for name in ("difference", "stderr", "limit", "slope") if name in row}
    zeros = {}
    if row["name"] == "mean_correlation":
        # Networks are sampled in float32 unless float64 is asked for.
        types = {"predicted": "float64", "measured": "float32"}
        zeros = {name: unless_rounding(row[name], dtype) for name, dtype in types.items()}
    return row | three | zeros | {"z": round(row["z"], 2)}


def _single(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [row for row in rows if "[" not in row["name"] and row["z"] == row["z"]]


def _largest(rows: list[dict[str, Any]]) -> float:
    return max((abs(row["z"]) for row in _single(rows)), default=0.0)


def _of_limits(rows: list[dict[str, Any]]) -> str:
    found = [abs(row["limit"]) / row["limit_stderr"] for row in _single(rows) if row.get("limit_stderr")]
    return f", the largest limit {max(found):.2f} of its standard errors" if found else ""


def _write(comparison: "Comparison", folder: Path, *, plots: bool) -> None:
    from kernelprop.cli.columns import as_csv

    comparison.save(folder / "comparison.npz")
    (folder / "comparison.csv").write_text(as_csv(comparison.table()))
    (folder / "comparison.json").write_text(_as_json(comparison) + "\n")
    if plots:
        draw(comparison, folder)


def _as_json(comparison: "Comparison") -> str:
    import json

    from kernelprop.cli.columns import strict_rows

    content = {
        "format": "kernelprop comparison",
        "widths": comparison.widths.tolist(),
        "draws": comparison.draws.tolist(),
        "notes": list(comparison.notes),
        "rows": strict_rows(comparison.table()),
    }
    return json.dumps(content, allow_nan=False, indent=1)
