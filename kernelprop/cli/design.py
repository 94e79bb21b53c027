"""``kernelprop design``: the options of a design, its table, and its files."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kernelprop.cli.input_kernel import KernelOptions, kernel_from_data, named_kernel
from kernelprop.cli.options import option, takes_options
from kernelprop.cli.output import check_folder
from kernelprop.cli.voice import Json, Quiet, Voice
from kernelprop.diagnosis.collapse import unless_rounding

if TYPE_CHECKING:
    from rich.console import Console

    from kernelprop.designs import Design

NETWORK, OUTPUT = "Network", "Output"


@takes_options
def design(
    input_kernel: KernelOptions,
    length: Annotated[int | None, option(NETWORK, "Positions; those of the input kernel if not given.", "T")] = None,
    depth: Annotated[int, option(NETWORK, "Blocks (12).", "L")] = 12,
    attention: Annotated[str, option(NETWORK, "espa (default) or uspa.", "NAME")] = "espa",
    gamma: Annotated[float, option(NETWORK, "espa: decay rate of the last layer (0.005).", "NUMBER")] = 0.005,
    rho: Annotated[float, option(NETWORK, "uspa: correlation of the last layer (0.8).", "NUMBER")] = 0.8,
    causal: Annotated[
        bool,
        typer.Option(
            "--causal/--no-causal", help="Attend backward only (default).", rich_help_panel=NETWORK, show_default=False
        ),
    ] = True,
    activation: Annotated[
        str, option(NETWORK, "Of the MLPs: gelu (default), leaky_relu, tanh, ...; none is attention alone.", "NAME")
    ] = "gelu",
    shaping: Annotated[str, option(NETWORK, "dks, tat or none; auto: tat for leaky_relu, else dks.", "NAME")] = "auto",
    zeta: Annotated[float | None, option(NETWORK, "dks: slope of the whole network (1.5).", "NUMBER")] = None,
    eta: Annotated[float | None, option(NETWORK, "tat of leaky_relu: end of correlation 0 (0.9).", "NUMBER")] = None,
    tau: Annotated[float | None, option(NETWORK, "tat of others: the network's curvature (0.3).", "NUMBER")] = None,
    beta: Annotated[
        float | None,
        option(NETWORK, "Branch weight beside skips, alpha^2 + beta^2 = 1; no skips if not given.", "NUMBER"),
    ] = None,
    out: Annotated[Path, option(OUTPUT, "Where to write, without ending (kernelprop-design).", "PATH")] = Path(
        "kernelprop-design"
    ),
    dtype: Annotated[str, option(OUTPUT, "Of the tensors: float32 (default) or float64.", "TYPE")] = "float32",
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Design a deep network that keeps its kernel, for use elsewhere.

    Writes OUT.safetensors (rescale D, bias B and mask of every layer, kernels) and
    OUT.toml (a description for evolve and describe, with schedule, shaped
    activation and initialisation in words and numbers), and shows what becomes
    of the input kernel.

    [bold]Examples[/]

    kernelprop design --length 64 --depth 36
    kernelprop design --depth 12 --attention uspa --tokens to,be,or,not,to,be
    kernelprop evolve kernelprop-design.toml
    """
    if not out.parent.is_dir():
        raise ValueError(f"--out {out}: the folder {out.parent} does not exist")
    check_folder(out.parent)
    targets = {name: value for name, value in (("zeta", zeta), ("eta", eta), ("tau", tau)) if value is not None}
    voice = Voice(json, quiet)
    with voice.working("designing"):
        made = _make(
            input_kernel,
            length,
            depth,
            attention=attention,
            gamma=gamma,
            rho=rho,
            causal=causal,
            activation=None if activation == "none" else activation,
            shaping=None if shaping == "none" else shaping,
            residual=_residual(beta),
            **targets,
        )
        written = made.save(out, dtype)
    voice.answer(lambda: _content(made, written), lambda screen: _print(made, written, screen))


def _make(options: KernelOptions, length: int | None, depth: int, **numbers: Any) -> "Design":
    from kernelprop.designs import design as make

    given = kernel_from_data(options)
    positions = length if given is None else given.shape[-1]
    if positions is None:
        raise ValueError("--length: the number of positions is wanted")
    if length not in (None, positions):
        raise ValueError(f"--length: {length} conflicts with a kernel of {positions} positions")
    if given is None and options.kernel not in (None, "identity"):
        given = named_kernel(options, positions)
    return make(positions, depth, kernel0=given, **numbers)


def _residual(beta: float | None) -> Any:
    from kernelprop.layers.residual import normalised

    return None if beta is None else normalised(beta)


def _content(made: "Design", written: list[Path]) -> dict[str, Any]:
    return {
        "format": "kernelprop design",
        "kernels": made.table(),
        made.parameter: made.schedule.tolist(),
        "input_scale": made.input_scale,
        "notes": _lines(made),
        "written": [str(path) for path in written],
    }


def _print(made: "Design", written: list[Path], screen: "Console") -> None:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("kernel", no_wrap=True)
    for title in ("mean\ncorrelation", "diagonal", "distance from\nprescribed"):
        table.add_column(title, justify="right", no_wrap=True)
    for row in made.table():
        low, high = (format(row[f"diagonal_{end}"], ".4g") for end in ("minimum", "maximum"))
        diagonal = low if low == high else f"{low} to {high}"
        correlation = f"{unless_rounding(row['mean_correlation']):.7f}"
        table.add_row(row["kernel"], correlation, diagonal, f"{row['distance']:.3g}")
    screen.print(table, crop=False)
    for line in _lines(made):
        screen.print(line, highlight=False, markup=False, soft_wrap=not screen.is_terminal)
    screen.print(f"written: {', '.join(map(str, written))}", highlight=False, markup=False, soft_wrap=True)


def _lines(made: "Design") -> list[str]:
    lines = []
    if made.fit is not None:
        lines.append(
            f"{made.fit.parameter} = {made.fit.value:.6g} fits the input: max |diagonal - 1| of the attention alone "
            f"{made.fit.before.maximum:.3g} -> {made.fit.after.maximum:.3g}; inputs are to be multiplied by "
            f"{made.input_scale**0.5:.6g}"
        )
    if made.model.mlp is not None and hasattr(made.model.mlp.activation, "parameters"):
        numbers = ", ".join(f"{name} = {float(v):.9g}" for name, v in made.model.mlp.activation.parameters.items())
        lines.append(f"{made.model.mlp.activation.name}: {numbers}")
    return lines
