"""``kernelprop evolve``: the options, and nothing else."""

from pathlib import Path
from typing import Annotated

import typer

from kernelprop.cli.input_kernel import KernelOptions
from kernelprop.cli.network import NetworkOptions
from kernelprop.cli.run import RunOptions, run

ATTENTION, NETWORK, KERNEL, OUTPUT = "Attention", "Network", "Input kernel", "Computation and output"


def _option(panel: str, text: str, metavar: str, *names: str):
    return typer.Option(*names, help=text, metavar=metavar, rich_help_panel=panel, show_default=False)


def _switch(panel: str, text: str, *names: str):
    return typer.Option(*names, help=text, rich_help_panel=panel, show_default=False)


def evolve(
    description: Annotated[
        Path | None,
        typer.Argument(
            metavar="[DESCRIPTION]",
            help="A network and its input kernel in a TOML file; see kernelprop describe.",
            show_default=False,
        ),
    ] = None,
    example: Annotated[
        str | None, _option(ATTENTION, "Attention and input kernel of a real network: minilm.", "NAME")
    ] = None,
    attention: Annotated[
        str | None,
        _option(
            ATTENTION, "Matrices (T,T), (L,T,T) or (L,H,T,T); or espa, uspa, uniform, identity, softmax.", "FILE|NAME"
        ),
    ] = None,
    length: Annotated[int | None, _option(ATTENTION, "Positions of a named attention.", "T")] = None,
    depth: Annotated[int | None, _option(ATTENTION, "Layers; the file's, or 1.", "L")] = None,
    gamma: Annotated[float | None, _option(ATTENTION, "espa: decay rate of the last layer (0.005).", "NUMBER")] = None,
    gamma0: Annotated[float | None, _option(ATTENTION, "espa: decay rate of the input (inf).", "NUMBER")] = None,
    rho: Annotated[float | None, _option(ATTENTION, "uspa: correlation of the last layer (0.8).", "NUMBER")] = None,
    rho0: Annotated[float | None, _option(ATTENTION, "uspa: correlation of the input (0).", "NUMBER")] = None,
    causal: Annotated[
        bool | None,
        _switch(ATTENTION, "Attend backward only (espa, uspa: causal; others: not).", "--causal/--no-causal"),
    ] = None,
    temperature: Annotated[
        float | None, _option(ATTENTION, "softmax: factor of its random logits (1).", "NUMBER")
    ] = None,
    alpha: Annotated[float | None, _option(NETWORK, "Share of the identity in alpha I + beta A (0).", "NUMBER")] = None,
    beta: Annotated[float | None, _option(NETWORK, "Share of the attention in it (1).", "NUMBER")] = None,
    skip: Annotated[float | None, _option(NETWORK, "Residual: weight of the skip (1).", "NUMBER")] = None,
    branch: Annotated[float | None, _option(NETWORK, "Residual: weight of the attention branch (1).", "NUMBER")] = None,
    mlp: Annotated[str | None, _option(NETWORK, "An MLP of this activation: relu, gelu, ...", "NAME")] = None,
    expansion: Annotated[float | None, _option(NETWORK, "MLP: hidden width over width (4).", "NUMBER")] = None,
    mlp_skip: Annotated[
        float | None, _option(NETWORK, "Residual of the MLP: weight of the skip (--skip).", "NUMBER")
    ] = None,
    mlp_branch: Annotated[
        float | None, _option(NETWORK, "Residual of the MLP: weight of its branch (--branch).", "NUMBER")
    ] = None,
    norm: Annotated[str | None, _option(NETWORK, "Normalise before branches, or after sums.", "pre|post")] = None,
    kernel: Annotated[
        str | None,
        _option(KERNEL, "Matrix (T,T), or a batch; or identity, equicorrelated, exponential.", "FILE|NAME"),
    ] = None,
    tokens: Annotated[
        str | None, _option(KERNEL, "Token ids (T,), or words with commas: repeats are correlated.", "FILE|WORDS")
    ] = None,
    inputs: Annotated[str | None, _option(KERNEL, "Inputs X (T,d): the kernel is X X'/d.", "FILE")] = None,
    correlation: Annotated[
        float | None, _option(KERNEL, "equicorrelated: of every pair; --tokens: of different ones (0).", "NUMBER")
    ] = None,
    decay: Annotated[float | None, _option(KERNEL, "exponential: the rate g in exp(-g|i-j|).", "NUMBER")] = None,
    observables: Annotated[
        str, _option(OUTPUT, "moments, or all: eigenvalues, ranks and attention entropy too.", "moments|all")
    ] = "moments",
    keep: Annotated[
        str | None, _option(OUTPUT, "Kernels to write: all, last, or depths 0,10,20 (all up to 256 MiB).", "DEPTHS")
    ] = None,
    show: Annotated[str | None, _option(OUTPUT, "Depths of the table and the heat maps: 0,3,6.", "DEPTHS")] = None,
    dtype: Annotated[str, _option(OUTPUT, "float64 or float32.", "TYPE")] = "float64",
    out: Annotated[Path, _option(OUTPUT, "Folder for results and pictures (kernelprop-output).", "FOLDER")] = Path(
        "kernelprop-output"
    ),
    no_plots: Annotated[bool, _switch(OUTPUT, "Draw no pictures.", "--no-plots")] = False,
    json: Annotated[bool, _switch(OUTPUT, "Print strict JSON instead of the table.", "--json")] = False,
    quiet: Annotated[bool, _switch(OUTPUT, "Print nothing but errors.", "--quiet")] = False,
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
        NetworkOptions(
            attention=attention,
            length=length,
            depth=depth,
            gamma=gamma,
            gamma0=gamma0,
            rho=rho,
            rho0=rho0,
            causal=causal,
            alpha=alpha,
            beta=beta,
            skip=skip,
            branch=branch,
            temperature=temperature,
            mlp=mlp,
            expansion=expansion,
            mlp_skip=mlp_skip,
            mlp_branch=mlp_branch,
            norm=norm,
        ),
        KernelOptions(kernel=kernel, tokens=tokens, inputs=inputs, correlation=correlation, decay=decay),
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
