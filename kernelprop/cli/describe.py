"""``kernelprop describe``: a network in words and equations, or as a description to edit."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kernelprop.cli.described import plain_letters, read_file, read_network_with_notes
from kernelprop.cli.network import NetworkOptions, attention_file, attention_notes, network
from kernelprop.cli.options import takes_options
from kernelprop.cli.voice import Json, strict_json

if TYPE_CHECKING:
    from kernelprop.architecture import Transformer


@takes_options
def describe(
    options: NetworkOptions,
    file: Annotated[
        Path | None, typer.Argument(help="A description (.toml), or a result that has one (.npz).", show_default=False)
    ] = None,
    toml: Annotated[
        bool, typer.Option("--toml", help="Print a description in TOML, to edit and to give to evolve.")
    ] = False,
    json: Json = False,
) -> None:
    """Say what a network is: blocks, attention, how every weight starts, and the kernel recursion.

    [bold]Examples[/]

    kernelprop describe network.toml
    kernelprop describe --attention espa --length 64 --depth 36
    kernelprop describe --attention espa --length 64 --depth 36 --toml > network.toml
    kernelprop describe --attention softmax --length 64 --depth 12 --mlp silu --gated --norm pre --norm-kind rms
    """
    model, text, notes = _read(file, options, toml)
    if json:
        content = {
            "format": "kernelprop description",
            "words": _in_words(model),
            "notes": notes,
            "toml": text if toml else None,
        }
        sys.stdout.write(strict_json(content) + "\n")
        return
    # A description in TOML holds no given matrices, and so no notes.
    words = text if toml else "\n\n".join([_in_words(model), *notes])
    sys.stdout.write(plain_letters(words, sys.stdout.encoding) + "\n")


def _read(file: Path | None, options: NetworkOptions, toml: bool) -> "tuple[Transformer, str, tuple[str, ...]]":
    from kernelprop.descriptions.writing import description_toml

    if file is not None:
        if options != NetworkOptions():
            raise ValueError(f"{file}: describes the whole network; leave the other options out")
        if not toml:
            model, notes = read_network_with_notes(file)
            return model, "", notes
        described = read_file(file)
        return described.model, description_toml(described.model, described.kernel0), described.notes
    if options.attention is None:
        raise ValueError("describe: a file or --attention is wanted; see kernelprop describe --help")
    matrices = attention_file(options)
    model = network(options, matrices, options.length)
    return model, description_toml(model).rstrip() if toml else "", attention_notes(matrices)


def _in_words(model: "Transformer") -> str:
    from kernelprop.descriptions.in_words import describe as in_words

    return in_words(model)
