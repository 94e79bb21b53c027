"""``kernelprop describe``: a network in words and equations, or as a description to edit."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kernelprop.cli.described import plain_letters, read_file
from kernelprop.cli.network import NetworkOptions, attention_file, network

if TYPE_CHECKING:
    from kernelprop.architecture import Transformer


def _option(text: str, metavar: str):
    return typer.Option(help=text, metavar=metavar, show_default=False)


def describe(
    file: Annotated[
        Path | None, typer.Argument(help="A description (.toml), or a result that has one (.npz).", show_default=False)
    ] = None,
    attention: Annotated[str | None, _option("espa, uspa, uniform, identity, softmax, or a file.", "FILE|NAME")] = None,
    length: Annotated[int | None, _option("Positions.", "T")] = None,
    depth: Annotated[int | None, _option("Layers; 1 if not given.", "L")] = None,
    gamma: Annotated[float | None, _option("espa: decay rate of the last layer (0.005).", "NUMBER")] = None,
    gamma0: Annotated[float | None, _option("espa: decay rate of the input (inf).", "NUMBER")] = None,
    rho: Annotated[float | None, _option("uspa: correlation of the last layer (0.8).", "NUMBER")] = None,
    rho0: Annotated[float | None, _option("uspa: correlation of the input (0).", "NUMBER")] = None,
    causal: Annotated[
        bool | None, typer.Option("--causal/--no-causal", help="Attend backward only.", show_default=False)
    ] = None,
    alpha: Annotated[float | None, _option("Share of the identity in alpha I + beta A (0).", "NUMBER")] = None,
    beta: Annotated[float | None, _option("Share of the attention in it (1).", "NUMBER")] = None,
    skip: Annotated[float | None, _option("Residual: weight of the skip (1).", "NUMBER")] = None,
    branch: Annotated[float | None, _option("Residual: weight of the attention branch (1).", "NUMBER")] = None,
    temperature: Annotated[float | None, _option("softmax: factor of its random logits (1).", "NUMBER")] = None,
    mlp: Annotated[str | None, _option("An MLP of this activation: relu, gelu, ...", "NAME")] = None,
    expansion: Annotated[float | None, _option("MLP: hidden width over width (4).", "NUMBER")] = None,
    mlp_skip: Annotated[float | None, _option("Residual of the MLP: weight of the skip (--skip).", "NUMBER")] = None,
    mlp_branch: Annotated[
        float | None, _option("Residual of the MLP: weight of its branch (--branch).", "NUMBER")
    ] = None,
    norm: Annotated[str | None, _option("Normalise before branches, or after sums.", "pre|post")] = None,
    toml: Annotated[
        bool, typer.Option("--toml", help="Print a description in TOML, to edit and to give to evolve.")
    ] = False,
) -> None:
    """Say what a network is: blocks, attention, how every weight starts, and the kernel recursion.

    [bold]Examples[/]

    kernelprop describe network.toml
    kernelprop describe --attention espa --length 64 --depth 36
    kernelprop describe --attention espa --length 64 --depth 36 --toml > network.toml
    """
    options = NetworkOptions(
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
    )
    model, text = _read(file, options, toml)
    sys.stdout.write(plain_letters(text if toml else _in_words(model), sys.stdout.encoding) + "\n")


def _read(file: Path | None, options: NetworkOptions, toml: bool) -> "tuple[Transformer, str]":
    from kernelprop.descriptions.writing import description_toml

    if file is not None:
        if options != NetworkOptions():
            raise ValueError(f"{file}: describes the whole network; leave the other options out")
        described = read_file(file)
        return described.model, description_toml(described.model, described.kernel0) if toml else ""
    if options.attention is None:
        raise ValueError("describe: a file or --attention is wanted; see kernelprop describe --help")
    model = network(options, attention_file(options), options.length)
    return model, description_toml(model).rstrip() if toml else ""


def _in_words(model: "Transformer") -> str:
    from kernelprop.descriptions.in_words import describe as in_words

    return in_words(model)
