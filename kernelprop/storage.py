"""One ``.npz`` file for one result: its arrays as entries, the rest as strict JSON in ``metadata.json``.

Anyone can read the arrays with ``numpy.load``; nothing is ever pickled.
"""

import json
import os
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from kernelprop.files import BROKEN_ARCHIVE, write_whole
from kernelprop.stored_form import Encoder, decode

FORMAT = "kernelprop"
VERSION = 1
METADATA = "metadata.json"

# What numpy, zipfile and the decoder raise for a broken or foreign file.
_BROKEN = (*BROKEN_ARCHIVE, AttributeError, ImportError)


def save(value: Any, path: str | os.PathLike[str]) -> None:
    """Write a tree of dataclasses, arrays and numbers to one file, whole or not at all.

    Raises:
        ValueError: naming what can't be stored, or the folder that can't be written.
    """
    encoder = Encoder()
    content = encoder.encode(value, "")
    metadata = json.dumps({"format": FORMAT, "version": VERSION, "content": content}, allow_nan=False)
    write_whole(path, lambda stream: _write(stream, metadata, encoder.arrays))


def load(path: str | os.PathLike[str], functions: Mapping[str, Callable] | None = None) -> Any:
    """Read back what ``save`` wrote.

    Args:
        path: the file.
        functions: the user's own functions by name. Without them the rest loads all the same, with
            placeholders that raise when they are called.

    Raises:
        ValueError: one line naming the file, when it is missing, broken, or not one of these.
    """
    name = os.fspath(path)
    if not Path(path).is_file():
        raise ValueError(f"{name}: no such file")
    try:
        metadata, arrays = _read(path)
    except OSError as error:
        raise ValueError(f"{name}: can't be read: {error.strerror or error}") from error
    except _BROKEN:
        raise ValueError(f"{name}: not a file of {FORMAT}, or a broken one") from None
    if metadata["version"] != VERSION:
        raise ValueError(f"{name}: format version {metadata['version']}; this release reads {VERSION}")
    try:
        return decode(metadata["content"], arrays, functions or {})
    except _BROKEN as error:
        raise ValueError(f"{name}: can't be read: {error}") from error


def equal(one: Any, other: Any) -> bool:
    """Whether two trees have the same stored form: arrays equal in dtype and entries, NaN equal to NaN."""
    forms = []
    for value in (one, other):
        encoder = Encoder()
        forms.append((encoder.encode(value, ""), encoder.arrays))
    (content, arrays), (other_content, other_arrays) = forms
    return content == other_content and all(_same(arrays[k], other_arrays[k]) for k in arrays)


def _same(one: np.ndarray, other: np.ndarray) -> bool:
    return one.dtype == other.dtype and np.array_equal(one, other, equal_nan=one.dtype.kind in "fc")


def _write(stream: BinaryIO, metadata: str, arrays: Mapping[str, np.ndarray]) -> None:
    with zipfile.ZipFile(stream, "w") as file:
        file.writestr(METADATA, metadata)
        for name, array in arrays.items():
            with file.open(f"{name}.npy", "w", force_zip64=True) as entry:
                np.lib.format.write_array(entry, array, allow_pickle=False)


def _read(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    with Path(path).open("rb") as stream, np.load(stream, allow_pickle=False) as file:
        metadata = json.loads(file[METADATA])
        if metadata["format"] != FORMAT or "content" not in metadata or "version" not in metadata:
            raise ValueError("foreign file")
        return metadata, {key: file[key] for key in file.files if key != METADATA}
