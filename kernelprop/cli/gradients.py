"""``kernelprop gradients``: the expected gradient norm of every weight, layer by layer."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kernelprop.cli.options import takes_options
from kernelprop.cli.results import OutputOptions, print_lines, write_numbers
from kernelprop.cli.voice import Voice

if TYPE_CHECKING:
    from rich.console import Console

    from kernelprop.results import GradientNorms

WEIGHTS = ("query", "key", "value", "output", "mlp_in", "mlp_gate", "mlp_out")
NAMES = ("gradients.npz", "gradients.json", "gradients.csv", "gradients.png")


@takes_options
def gradients(
    file: Annotated[Path, typer.Argument(help="A description (.toml), or a result that has one (.npz).")],
    *,
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
    output: OutputOptions,
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
    from kernelprop.gradients import gradient_norms

    check_folder(output.out)
    voice = output.voice
    with voice.working("reading"):
        described = read_file(file)
    method: Any = query_method
    with voice.working(f"gradients of {described.model.depth} layers"):
        norms = gradient_norms(described.model, described.kernel0, cotangent, width, method)
        balanced = balance_temperature(described.model, described.kernel0, cotangent).temperature if balance else None

    def write(folder: Path) -> None:
        write_numbers(folder, "gradients", norms, _content(norms, balanced), gradients=_rows(norms))
        if not output.no_plots:
            draw(norms, folder)

    with voice.working("writing"):
        written = fill(output.out, write, NAMES)
    publish(norms, written, voice, balanced)


def publish(norms: "GradientNorms", written: list[Path], voice: Voice, balanced: float | None = None) -> None:
    """Print gradient norms as strict JSON or, unless quiet, as a table."""
    voice.answer(lambda: _content(norms, balanced), lambda stream: _print(norms, balanced, written, stream))


def draw(norms: "GradientNorms", folder: Path) -> None:
    """Draw the profile into a folder."""
    from kernelprop import plotting

    plotting.save_figure(plotting.gradient_profile(norms), folder / "gradients.png")


def _columns(norms: "GradientNorms") -> dict[str, Any]:
    """The norms of all weights that there are, each before its standard error where it has one."""
    columns = {}
    for name in WEIGHTS:
        pair = {name: getattr(norms, name), f"{name}_stderr": (norms.stderr or {}).get(name)}
        columns |= {column: values.tolist() for column, values in pair.items() if values is not None}
    return columns


def _rows(norms: "GradientNorms") -> list[dict[str, Any]]:
    columns = _columns(norms)
    return [
        {"layer": index + 1, **{name: values[index] for name, values in columns.items()}, "query_exact": exact}
        for index, exact in enumerate(str(exact).lower() for exact in norms.query_exact.tolist())
    ]


def _content(norms: "GradientNorms", balanced: float | None) -> dict[str, Any]:
    content: dict[str, Any] = {
        "format": "kernelprop gradients",
        "width": norms.width,
        "notes": norms.notes,
        "query_exact": norms.query_exact.tolist(),
        "norms": _columns(norms),
    }
    return content if balanced is None else content | {"balancing_temperature": balanced}


def _print(norms: "GradientNorms", balanced: float | None, written: list[Path], stream: "Console") -> None:
    from kernelprop.cli.columns import print_columns
    from kernelprop.cli.depths import readable_selection

    rows = _rows(norms)
    chosen = [layer for layer in readable_selection(len(rows)) if layer > 0]
    print_columns([_readable(rows[layer - 1]) for layer in dict.fromkeys([1, *chosen])], stream)
    lines = [f"expected squared Frobenius norms at width {norms.width}, weights of variance 1/fan-in", *norms.notes]
    if norms.stderr:
        lines.append("norm +- standard error")
    if not norms.query_exact.all():
        lines.append("* first order: exact only where everything above the layer is linear")
    if balanced is not None:
        lines.append(f"temperature that balances query and value gradients: {balanced:.6g}")
    print_lines(lines, written, stream)


def _readable(row: dict[str, Any]) -> dict[str, Any]:
    """A row whose query has a star where it isn't exact."""
    shown = {name: value for name, value in row.items() if name != "query_exact"}
    if row["query_exact"] == "true" or "query" not in row:
        return shown
    error = shown.pop("query_stderr", None)
    return shown | {"query": f"{row['query']:.6g}*" + ("" if error is None else f" +- {error:.2g}")}
