"""``load_description``: a TOML file as a network and its input kernel."""

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from kernelprop.architecture import Transformer
from kernelprop.descriptions.attention import read_attention
from kernelprop.descriptions.blocks import read_gains, read_mlp, read_norm, read_positions, read_residual
from kernelprop.descriptions.entries import Place, flag, text, unknown
from kernelprop.descriptions.given_rows import given_matrices, rows_notes
from kernelprop.descriptions.inputs import of_length, read_input
from kernelprop.network_shaping import shape_activation

# "design" is what a design adds for its reader; nothing in it describes the network.
TABLES = ("attention", "mlp", "residual", "norm", "gains", "positions", "input", "design")
ENTRIES = ("name", "parallel")


@dataclass(frozen=True)
class Description:
    """What a description holds.

    Attributes:
        name: what the file calls the network, its own name if nothing.
        model: the network.
        kernel0: the input kernel, ``(T, T)``; the identity if the file names none.
        notes: what a reader of its numbers should know, a line each.
    """

    name: str
    model: Transformer
    kernel0: np.ndarray
    notes: tuple[str, ...] = ()


def load_description(path: str | os.PathLike[str]) -> Description:
    """Read a network and its input kernel from a TOML file.

    Tables: ``[attention]`` (``kind``, ``length``, ``depth`` and the kind's own numbers, by the names of the library's
    functions; ``mask``, ``mix = {alpha, beta}``, ``copies``), ``[mlp]``, ``[residual]`` (``choice``, or pairs
    ``attention`` and ``mlp``), ``[norm]``, ``[gains]``, ``[positions]``, ``[input]``; entries ``name`` and
    ``parallel``. Files of arrays are found beside the description.

    Raises:
        ValueError: in one line with file, table and entry: what can't be read, is unknown (with what is known), not
            supported, or wrong.

    >>> import tempfile
    >>> toml = '''
    ... [attention]
    ... kind = "espa"
    ... length = 16
    ... depth = 12
    ... [mlp]
    ... activation = {kind = "dks", fn = "gelu"}
    ... '''
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     written = Path(folder, "network.toml").write_text(toml)
    ...     described = load_description(Path(folder, "network.toml"))
    >>> described.name, described.model.depth, described.model.mlp.activation.name
    ('network', 12, 'dks(gelu)')
    """
    file = Path(path)
    return read_description(_parse(file), file)


def read_description(content: Mapping[str, Any], file: Path) -> Description:
    """Read a parsed description; ``file`` is for messages and for the arrays beside it."""
    top = Place(file)
    for key in content:
        if key not in (*TABLES, *ENTRIES):
            raise top.at(key).error(unknown(key, (*TABLES, *ENTRIES), "tables and entries"))
    if "attention" not in content:
        raise Place(file, "attention").error("is missing")
    kernel = read_input(content.get("input"), Place(file, "input"))
    model = _model(content, file, kernel.shape[-1] if isinstance(kernel, np.ndarray) else None)
    return Description(
        name=text(content["name"], top.at("name")) if "name" in content else file.stem,
        model=model,
        kernel0=of_length(kernel, model.length, Place(file, "input")),
        notes=_notes(content, model),
    )


def _notes(content: Mapping[str, Any], model: Transformer) -> tuple[str, ...]:
    """Constructions make matrices too, whose rows sum to what they say: only given ones are remarked on."""
    given = content["attention"]["kind"] == "dense" and "design" not in content
    return rows_notes(given_matrices(model.attention) if given else None)


def _model(content: Mapping[str, Any], file: Path, length: int | None) -> Transformer:
    attention, depth = read_attention(content["attention"], Place(file, "attention"), length)
    layers = attention.depth or depth or 1
    parts: dict[str, Any] = {}
    unsolved = None
    if "mlp" in content:
        parts["mlp"], unsolved = read_mlp(content["mlp"], Place(file, "mlp"))
    if "residual" in content:
        parts["residual"] = read_residual(content["residual"], Place(file, "residual"), layers)
    if "norm" in content:
        parts["norm"] = read_norm(content["norm"], Place(file, "norm"))
    if "gains" in content:
        parts["gains"] = read_gains(content["gains"], Place(file, "gains"))
    if "positions" in content:
        parts["positions"] = read_positions(content["positions"], Place(file, "positions"), attention.length)
    if "parallel" in content:
        parts["parallel"] = flag(content["parallel"], Place(file).at("parallel"))
    try:
        model = Transformer(attention, depth, **parts)
    except ValueError as error:
        raise _of_table(str(error), content, file) from None
    if unsolved is None:
        return model
    with Place(file, "mlp").at("activation").blame(unsolved.targets):
        return shape_activation(model, unsolved.method, **unsolved.targets)


# How the network calls entries that have other names in their tables.
_CALLED = {
    "positions": {"positions": ("file", "matrix")},
    "residual": {"attention": ("beta",), "mlp": ("beta",)},
}


def _of_table(message: str, content: Mapping[str, Any], file: Path) -> ValueError:
    """What the network says of one of its parts, at the table and entry that describe the part."""
    part = message.partition(": ")[0]
    table = {"depth": "attention"}.get(part, part)
    given = content.get(table)
    if table not in TABLES or given is None:
        return Place(file).error(message)
    return Place(file, table).blamed(message, given if isinstance(given, Mapping) else (), _CALLED.get(table))


def _parse(file: Path) -> dict[str, Any]:
    if not file.is_file():
        raise ValueError(f"{file}: {'is a folder, not a file' if file.is_dir() else 'no such file'}")
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ValueError(f"{file}: can't be read: {error.strerror or error}") from error
    except UnicodeDecodeError:
        raise ValueError(f"{file}: is no TOML: not a text in UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{file}: is no TOML: {error}") from None
