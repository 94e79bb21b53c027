"""``kernelprop design``: the options of a design, its table, and its files."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kernelprop.cli.console import console
from kernelprop.cli.input_kernel import KernelOptions, kernel_from_data, named_kernel
from kernelprop.cli.output import check_folder
from kernelprop.cli.progress import sign_of_life

if TYPE_CHECKING:
    from kernelprop.designs import Design

NETWORK, KERNEL, OUTPUT = "Network", "Input kernel", "Output"


def _option(panel: str, text: str, metavar: str, *names: str):
    return typer.Option(*names, help=text, metavar=metavar, rich_help_panel=panel, show_default=False)


def design(
    length: Annotated[int | None, _option(NETWORK, "Positions; those of the input kernel if not given.", "T")] = None,
    depth: Annotated[int, _option(NETWORK, "Blocks (12).", "L")] = 12,
    attention: Annotated[str, _option(NETWORK, "espa (default) or uspa.", "NAME")] = "espa",
    gamma: Annotated[float, _option(NETWORK, "espa: decay rate of the last layer (0.005).", "NUMBER")] = 0.005,
    rho: Annotated[float, _option(NETWORK, "uspa: correlation of the last layer (0.8).", "NUMBER")] = 0.8,
    causal: Annotated[
        bool,
        typer.Option(
            "--causal/--no-causal", help="Attend backward only (default).", rich_help_panel=NETWORK, show_default=False
        ),
    ] = True,
    activation: Annotated[
        str, _option(NETWORK, "Of the MLPs: gelu (default), leaky_relu, tanh, ...; none is attention alone.", "NAME")
    ] = "gelu",
    shaping: Annotated[str, _option(NETWORK, "dks, tat or none; auto: tat for leaky_relu, else dks.", "NAME")] = "auto",
    zeta: Annotated[float | None, _option(NETWORK, "dks: slope of the whole network (1.5).", "NUMBER")] = None,
    eta: Annotated[float | None, _option(NETWORK, "tat of leaky_relu: end of correlation 0 (0.9).", "NUMBER")] = None,
    tau: Annotated[float | None, _option(NETWORK, "tat of others: the network's curvature (0.3).", "NUMBER")] = None,
    beta: Annotated[
        float | None,
        _option(NETWORK, "Branch weight beside skips, alpha^2 + beta^2 = 1; no skips if not given.", "NUMBER"),
    ] = None,
    kernel: Annotated[
        str | None, _option(KERNEL, "Matrix (T,T); or identity (default), equicorrelated, exponential.", "FILE|NAME")
    ] = None,
    tokens: Annotated[str | None, _option(KERNEL, "Token ids (T,), or words with commas.", "FILE|WORDS")] = None,
    inputs: Annotated[str | None, _option(KERNEL, "Inputs X (T,d): the kernel is X X'/d.", "FILE")] = None,
    correlation: Annotated[
        float | None, _option(KERNEL, "equicorrelated: of every pair; --tokens: of different ones (0).", "NUMBER")
    ] = None,
    decay: Annotated[float | None, _option(KERNEL, "exponential: the rate g in exp(-g|i-j|).", "NUMBER")] = None,
    out: Annotated[Path, _option(OUTPUT, "Where to write, without ending (kernelprop-design).", "PATH")] = Path(
        "kernelprop-design"
    ),
    dtype: Annotated[str, _option(OUTPUT, "Of the tensors: float32 (default) or float64.", "TYPE")] = "float32",
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
    options = KernelOptions(kernel=kernel, tokens=tokens, inputs=inputs, correlation=correlation, decay=decay)
    targets = {name: value for name, value in (("zeta", zeta), ("eta", eta), ("tau", tau)) if value is not None}
    with sign_of_life("designing", quiet=False):
        made = _make(
            options,
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
    _print(made, written)


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


def _print(made: "Design", written: list[Path]) -> None:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("kernel", no_wrap=True)
    for title in ("mean\ncorrelation", "diagonal", "distance from\nprescribed"):
        table.add_column(title, justify="right", no_wrap=True)
    for row in made.table():
        low, high = (format(row[f"diagonal_{end}"], ".4g") for end in ("minimum", "maximum"))
        diagonal = low if low == high else f"{low} to {high}"
        table.add_row(row["kernel"], f"{row['mean_correlation']:.7f}", diagonal, f"{row['distance']:.3g}")
    screen = console()
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
