"""``kernelprop evolve``: the options, and nothing else."""

from pathlib import Path
from typing import Annotated

import typer

from kernelprop.cli.input_kernel import KernelOptions
from kernelprop.cli.network_options import NetworkOptions
from kernelprop.cli.options import option, switch, takes_options
from kernelprop.cli.run import RunOptions, run

OUTPUT = "Computation and output"


@takes_options
def evolve(
    network: NetworkOptions,
    input_kernel: KernelOptions,
    description: Annotated[
        Path | None,
        typer.Argument(
            metavar="[DESCRIPTION]",
            help="A network and its input kernel in a TOML file; see kernelprop describe.",
            show_default=False,
        ),
    ] = None,
    example: Annotated[
        str | None, option(OUTPUT, "Attention and input kernel of a real network: minilm.", "NAME")
    ] = None,
    observables: Annotated[
        str, option(OUTPUT, "moments, or all: eigenvalues, ranks and attention entropy too.", "moments|all")
    ] = "moments",
    keep: Annotated[
        str | None, option(OUTPUT, "Kernels to write: all, last, or depths 0,10,20 (all up to 256 MiB).", "DEPTHS")
    ] = None,
    show: Annotated[str | None, option(OUTPUT, "Depths of the table and the heat maps: 0,3,6.", "DEPTHS")] = None,
    dtype: Annotated[str, option(OUTPUT, "float64 or float32.", "TYPE")] = "float64",
    out: Annotated[Path, option(OUTPUT, "Folder for results and pictures (kernelprop-output).", "FOLDER")] = Path(
        "kernelprop-output"
    ),
    no_plots: Annotated[bool, switch(OUTPUT, "Draw no pictures.", "--no-plots")] = False,
    json: Annotated[bool, switch(OUTPUT, "Print strict JSON instead of the table.", "--json")] = False,
    quiet: Annotated[bool, switch(OUTPUT, "Print nothing but errors.", "--quiet")] = False,
) -> None:
    """Follow a kernel matrix through attention layers: does its rank collapse?

    Each layer takes S to the mean over heads of A_h S A_h' (infinite width).
    The input kernel is S = X X'/d. Arrays come from .npy, .npz and .safetensors
    files: FILE:NAME picks one of several, FILE:NAME[0] the first of its matrices.
    Results (.npz, .csv, .json) and pictures go to the output folder, in place of
    an earlier run's.

    [bold]Examples[/]

    kernelprop evolve --example minilm
    kernelprop evolve --example minilm --skip 1 --branch 0.5 --out with-skips
    kernelprop evolve --attention espa --length 100 --depth 100 --gamma 0.005
    kernelprop evolve --attention uspa --depth 12 --tokens to,be,or,not,to,be
    kernelprop evolve --attention uniform --causal --length 64 --depth 8
    kernelprop evolve --attention softmax --length 64 --depth 6 --mlp gelu --norm pre --skip 1
    kernelprop evolve network.toml
    kernelprop evolve --attention maps.npz:attention --kernel 'kernels.npy:\\[0]'
    """
    run(
        network,
        input_kernel,
        RunOptions(
            example=example,
            description=description,
            observables=observables,
            keep=keep,
            show=show,
            dtype=dtype,
            out=out,
            plots=not no_plots,
            json=json,
            quiet=quiet,
        ),
    )
