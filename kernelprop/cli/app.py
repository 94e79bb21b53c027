"""The command's subcommands, put together."""

from typing import Annotated

import typer

import kernelprop
from kernelprop.cli.compare import compare
from kernelprop.cli.describe import describe
from kernelprop.cli.design import design
from kernelprop.cli.doctor import doctor
from kernelprop.cli.evolve import evolve
from kernelprop.cli.gradients import gradients
from kernelprop.cli.html_report import report
from kernelprop.cli.show import show
from kernelprop.cli.simulate import simulate
from kernelprop.cli.train import train

app = typer.Typer(name="kernelprop", rich_markup_mode="rich", add_completion=True, pretty_exceptions_enable=False)
app.command()(evolve)
app.command()(show)
app.command()(report)
app.command()(describe)
app.command()(design)
app.command()(gradients)
app.command()(simulate)
app.command()(compare)
app.command()(train)
app.command()(doctor)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"kernelprop {kernelprop.__version__}")
        raise typer.Exit


@app.callback()
def kernelprop_command(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version.", callback=_print_version, is_eager=True, show_default=False
        ),
    ] = False,
) -> None:
    """Signal propagation in transformers at initialisation.

    Give attention matrices and an input kernel, see how the kernel evolves with
    depth and whether its rank collapses.

    [bold]Examples[/]

    kernelprop evolve --example minilm
    kernelprop evolve --attention espa --length 100 --depth 100 --gamma 0.005
    kernelprop show kernelprop-output/evolution.npz
    kernelprop report network.toml
    kernelprop design --length 64 --depth 36
    kernelprop describe kernelprop-design.toml
    kernelprop doctor
    """
