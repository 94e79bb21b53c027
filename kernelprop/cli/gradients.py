"""``kernelprop gradients``: the expected gradient norm of every weight, layer by layer."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from kernelprop.results import GradientNorms

NAMES = ("gradients.npz", "gradients.json", "gradients.csv", "gradients.png")


def gradients(
    file: Annotated[Path, typer.Argument(help="A description (.toml), or a result that has one (.npz).")],
    cotangent: Annotated[
        str, typer.Option(help="Where the loss reads: all positions, the last, or their mean.", metavar="all|last|mean")
    ] = "all",
    width: Annotated[int, typer.Option(help="Width d of the network; 1 gives the width-free form.")] = 1,
    query_method: Annotated[
        str, typer.Option(help="How the query row is taken.", metavar="first_order|exact|sampled")
    ] = "first_order",
    balance: Annotated[
        bool, typer.Option("--balance", help="Also find the temperature that balances queries and values.")
    ] = False,
    out: Annotated[Path, typer.Option(help="Folder for results and the picture.")] = Path("kernelprop-output"),
    no_plots: Annotated[bool, typer.Option("--no-plots", help="Draw no picture.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print strict JSON instead of the table.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing but errors.")] = False,
) -> None:
    """Expected squared gradient norms of all weights at initialisation, in closed form.

    The loss is a random one, <R, X_L> with R of variance 1 where it reads. A star
    marks queries taken at first order where that is not exact.

    [bold]Examples[/]

    kernelprop gradients network.toml
    kernelprop gradients network.toml --cotangent last --width 512
    kernelprop gradients network.toml --balance
    kernelprop describe --attention espa --length 64 --depth 12 --toml > network.toml
    """
    from kernelprop.balance import balance_temperature
    from kernelprop.cli.described import read_file
    from kernelprop.cli.output import check_folder, fill
    from kernelprop.cli.progress import sign_of_life
    from kernelprop.gradients import gradient_norms

    check_folder(out)
    silent = quiet or json
    with sign_of_life("reading", quiet=silent):
        described = read_file(file)
    method: Any = query_method
    with sign_of_life(f"gradients of {described.model.depth} layers", quiet=silent):
        norms = gradient_norms(described.model, described.kernel0, cotangent, width, method)
        balanced = balance_temperature(described.model, described.kernel0, cotangent).temperature if balance else None
    with sign_of_life("writing", quiet=silent):
        written = fill(out, lambda folder: _write(norms, folder, plots=not no_plots), NAMES)
    publish(norms, written, as_text=json, quiet=quiet, balanced=balanced)


def publish(
    norms: "GradientNorms", written: list[Path], *, as_text: bool, quiet: bool, balanced: float | None = None
) -> None:
    """Print gradient norms as strict JSON or, unless quiet, as a table."""
    if as_text:
        sys.stdout.write(_as_json(norms, balanced) + "\n")
    elif not quiet:
        _print(norms, balanced, written)


def draw(norms: "GradientNorms", folder: Path) -> None:
    """Draw the profile into a folder."""
    from kernelprop import plotting

    plotting.save_figure(plotting.gradient_profile(norms), folder / "gradients.png")


def _columns(norms: "GradientNorms") -> dict[str, Any]:
    names = ("query", "key", "value", "output", "mlp_in", "mlp_gate", "mlp_out")
    return {name: values for name in names if (values := getattr(norms, name)) is not None}


def _write(norms: "GradientNorms", folder: Path, *, plots: bool) -> None:
    norms.save(folder / "gradients.npz")
    (folder / "gradients.json").write_text(_as_json(norms, None) + "\n")
    columns = _columns(norms)
    rows = [",".join(["layer", *columns, "query_exact"])]
    for index, exact in enumerate(norms.query_exact.tolist()):
        rows.append(",".join([str(index + 1), *(repr(float(v[index])) for v in columns.values()), str(exact).lower()]))
    (folder / "gradients.csv").write_text("\n".join(rows) + "\n")
    if plots:
        draw(norms, folder)


def _as_json(norms: "GradientNorms", balanced: float | None) -> str:
    import json

    from kernelprop.tables import strict

    content: dict[str, Any] = {
        "format": "kernelprop gradients",
        "width": norms.width,
        "notes": list(norms.notes),
        "query_exact": norms.query_exact.tolist(),
        "norms": {name: [strict(float(v)) for v in values] for name, values in _columns(norms).items()},
    }
    if balanced is not None:
        content["balancing_temperature"] = strict(balanced)
    return json.dumps(content, allow_nan=False, indent=1)


def _print(norms: "GradientNorms", balanced: float | None, written: list[Path]) -> None:
    from rich import box
    from rich.table import Table

    from kernelprop.cli.console import console
    from kernelprop.cli.depths import readable_selection

    columns = _columns(norms)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for title in ("layer", *(name.replace("_", " ") for name in columns)):
        table.add_column(title, justify="right", no_wrap=True)
    chosen = [layer for layer in readable_selection(len(norms.query_exact)) if layer > 0]
    for layer in dict.fromkeys([1, *chosen]):
        cells = [f"{values[layer - 1]:.6g}" for values in columns.values()]
        cells[0] += "" if norms.query_exact[layer - 1] else "*"
        table.add_row(str(layer), *cells)
    stream = console()
    stream.print(table)
    lines = [f"expected squared Frobenius norms at width {norms.width}, weights of variance 1/fan-in", *norms.notes]
    if not norms.query_exact.all():
        lines.append("* first order: exact only where everything above the layer is linear")
    if balanced is not None:
        lines.append(f"temperature that balances query and value gradients: {balanced:.6g}")
    if written:
        lines.append(f"written to {written[0].parent}: {', '.join(path.name for path in written)}")
    for line in lines:
        stream.print(line, highlight=False, markup=False, soft_wrap=True)
