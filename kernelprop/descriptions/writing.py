"""``description_toml`` and ``save_description``: a network and its input kernel as TOML that loads back."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from kernelprop import door, kernels, storage, trust
from kernelprop.architecture import Transformer
from kernelprop.descriptions.activations import written_activation
from kernelprop.descriptions.attention import read_attention
from kernelprop.descriptions.entries import Place
from kernelprop.descriptions.operators import Arrays, Table, as_dense, plain, written_attention
from kernelprop.files import write_whole
from kernelprop.layers.gated_mlp import GatedMLP
from kernelprop.layers.norm import Norm


def description_toml(model: Transformer, kernel0: Any = None, name: str | None = None) -> str:
    """Write a network and its input kernel as TOML, from which `load_description` makes an equal network.

    Args:
        model: the network.
        kernel0: the input kernel, ``(T, T)``; the identity if None.
        name: what to call it.

    Raises:
        ValueError: for a user's own activation, which a text can't hold; for given matrices and kernels, which go to
            a file of their own: use `save_description`.

    >>> import kernelprop as kp
    >>> print(description_toml(kp.Transformer(kp.espa(64, 12), norm="post")))
    [attention]
    kind = "espa"
    length = 64
    depth = 12
    gamma = 0.005
    gamma0 = inf
    <BLANKLINE>
    [norm]
    place = "post"
    kind = "layer"
    epsilon = 0.0
    final = false
    <BLANKLINE>
    [input]
    kind = "identity"
    <BLANKLINE>
    """
    tables, arrays = description_tables(model, kernel0, name)
    if arrays:
        raise ValueError(
            f"description: {', '.join(arrays)}: arrays need a file beside the text; use kp.save_description"
        )
    return as_toml(tables)


def save_description(
    path: str | os.PathLike[str], model: Transformer, kernel0: Any = None, name: str | None = None
) -> list[Path]:
    """Write the description to ``path``, given matrices and kernels to an ``.npz`` file beside it.

    Both files are written whole, the arrays first.

    Returns:
        The files that were written.

    Raises:
        ValueError: for a user's own activation, and for a folder that can't be written.
    """
    file = Path(path)
    tables, arrays = description_tables(model, kernel0, name)
    beside = file.with_suffix(".npz")
    written = []
    if arrays:
        write_whole(beside, lambda stream: np.savez(stream, allow_pickle=False, **arrays))
        written.append(beside)
    content = as_toml(named_files(tables, beside.name))
    write_whole(file, lambda stream: stream.write(content.encode()))
    return [*written, file]


def description_tables(model: Transformer, kernel0: Any, name: str | None) -> tuple[Table, Arrays]:
    """The description as nested tables, and the arrays that they refer to by name alone."""
    attention, arrays = _attention(model)
    tables: Table = {} if name is None else {"name": name}
    if model.parallel:
        tables["parallel"] = True
    tables["attention"] = attention
    if model.mlp is not None:
        tables["mlp"] = _mlp(model.mlp)
    if model.residual is not None:
        pairs = {"attention": model.residual.attention, "mlp": model.residual.mlp}
        tables["residual"] = {key: [plain(weight) for weight in pair] for key, pair in pairs.items()}
    if model.norm is not None:
        tables["norm"] = _norm(model.norm)
    if model.gains is not None:
        names = ("query", "key", "value", "output", "temperature")
        tables["gains"] = {key: plain(getattr(model.gains, key)) for key in names}
    if model.positions is not None:
        tables["positions"] = _positions(model.positions, arrays)
    tables["input"] = _input(kernel0, model.length, arrays)
    return tables, arrays


def as_toml(tables: Mapping[str, Any]) -> str:
    """Nested tables as text: one table each, what is inside them in one line."""
    import tomlkit

    document = tomlkit.document()
    for key, value in tables.items():
        if not isinstance(value, Mapping):
            document.add(key, value)
            continue
        table = tomlkit.table()
        for entry, inner in value.items():
            table.add(entry, _inline(inner) if isinstance(inner, Mapping | list) else inner)
        if len(document.body) and not isinstance(document.body[-1][1], type(table)):
            document.add(tomlkit.nl())
        document.add(key, table)
        if key != list(tables)[-1]:
            table.add(tomlkit.nl())
    return tomlkit.dumps(document)


def _inline(value: Any) -> Any:
    import tomlkit

    if isinstance(value, Mapping):
        table = tomlkit.inline_table()
        table.update({key: _inline(item) for key, item in value.items()})
        return table
    if isinstance(value, list):
        items = tomlkit.array()
        for item in value:
            items.append(_inline(item))
        return items
    return value


def _attention(model: Transformer) -> tuple[Table, Arrays]:
    """The operator by its structure, where that gives the same one back; else by its matrices."""
    table, arrays = written_attention(model.attention, model.depth)
    if table["kind"] == "dense":
        return table, arrays
    described = {**table, **{key: array.tolist() for key, array in arrays.items()}}
    again, _ = read_attention(described, Place(Path("description"), "attention"), None)
    return (table, arrays) if storage.equal(again, model.attention) else as_dense(model.attention, model.depth)


def _mlp(mlp: Any) -> Table:
    gated = isinstance(mlp, GatedMLP)
    numbers = ("gain_in", "gain_gate", "gain_out") if gated else ("gain_in", "gain_out", "bias_in", "bias_out")
    return {
        "activation": written_activation(mlp.activation),
        **({"gated": True} if gated else {}),
        "expansion": mlp.expansion,
        **{name: plain(getattr(mlp, name)) for name in numbers},
    }


def _norm(norm: Norm) -> Table:
    return {"place": norm.place, "kind": norm.kind, "epsilon": norm.epsilon, "final": norm.final}


def _positions(kernel: np.ndarray, arrays: Arrays) -> Table:
    variance = float(kernel[0, 0])
    if np.array_equal(kernel, kernels.positional_learned(len(kernel), variance)):
        return {"kind": "learned", "variance": variance}
    arrays["positions"] = np.asarray(kernel)
    return {"kind": "given", "file": "positions"}


def _input(kernel0: Any, length: int, arrays: Arrays) -> Table:
    if kernel0 is None or np.array_equal(kernel0, np.eye(length)):
        return {"kind": "identity"}
    kernel = kernel0 if trust.is_certified(kernel0) else door.kernel(kernel0, "kernel0")
    if kernel.shape != (length, length):
        raise ValueError(f"kernel0: shape {kernel.shape} does not fit {length} positions")
    rho = float(kernel[0, -1])
    if length > 1 and -1 / (length - 1) < rho <= 1 and np.array_equal(kernel, kernels.equicorrelated(length, rho)):
        return {"kind": "equicorrelated", "correlation": rho}
    arrays["kernel"] = kernel
    return {"kind": "given", "file": "kernel"}


def named_files(tables: Table, file: str) -> Table:
    """Put the file's name before the names of arrays."""
    references = ("file", "bias", "mask")
    return {
        key: {
            entry: f"{file}:{inner}" if entry in references and isinstance(inner, str) else inner
            for entry, inner in value.items()
        }
        if isinstance(value, Mapping)
        else value
        for key, value in tables.items()
    }
