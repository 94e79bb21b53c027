"""Arrays from files: ``.npy``, ``.npz`` and ``.safetensors``, accepted whole or refused in one line."""

import os
import re
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from kernelprop.files import BROKEN_ARCHIVE

ENDINGS = (".npy", ".npz", ".safetensors")

# What numpy, zipfile and safetensors raise for a broken or foreign file.
_BROKEN = (*BROKEN_ARCHIVE, MemoryError)


class Source(NamedTuple):
    """An array in a file: ``FILE``, ``FILE:KEY``, ``FILE:KEY[PLACE]`` or ``FILE:[PLACE]``."""

    path: Path
    key: str | None
    place: int | None


def source(text: str) -> Source:
    """Read what the user wrote as a file, the name of an array in it, and an index along its first axis.

    >>> source("maps.npz:attention[0]")[1:]
    ('attention', 0)
    """
    if Path(text).exists():
        return Source(Path(text), None, None)
    match = re.fullmatch(r"(?P<path>.+?\.(?:npy|npz|safetensors)):(?P<key>.*?)(?:\[(?P<index>-?\d+)\])?", text)
    if match is None:
        return Source(Path(text), None, None)
    index = match["index"]
    return Source(Path(match["path"]), match["key"] or None, None if index is None else int(index))


def is_file_name(text: str) -> bool:
    """Whether a text means a file rather than the name of a construction.

    >>> is_file_name("maps.npz:attention"), is_file_name("espa")
    (True, False)
    """
    path = source(text).path
    return text != "" and (path.suffix != "" or len(path.parts) > 1 or path.exists())


def array(text: str) -> np.ndarray:
    """Read one array.

    Raises:
        ValueError: naming the file, when it is missing, broken, not what its ending says, or holds several
            arrays of which none was named.
    """
    path, key, index = source(text)
    if not path.is_file():
        raise ValueError(f"{path}: {'is a folder, not a file' if path.is_dir() else 'no such file'}")
    if path.suffix not in _READERS:
        raise ValueError(f"{path}: files of {path.suffix or 'no ending'} are not read; wanted: {', '.join(ENDINGS)}")
    try:
        found = _READERS[path.suffix](path, key)
    except OSError as error:
        raise ValueError(f"{path}: can't be read: {error.strerror or error}") from error
    return found if index is None else _slice(found, index, text)


def _slice(found: np.ndarray, index: int, text: str) -> np.ndarray:
    if found.ndim < 3:
        raise ValueError(f"{text}: an index picks one matrix of several; the array's shape is {found.shape}")
    if not -len(found) <= index < len(found):
        raise ValueError(f"{text}: index {index} is outside its {len(found)} matrices (they count from 0)")
    return found[index]


def _npy(path: Path, key: str | None) -> np.ndarray:
    if key is not None:
        raise ValueError(f"{path}: a .npy file holds one array without a name; {key!r} was asked for")
    with path.open("rb") as stream:
        if stream.read(6) != b"\x93NUMPY":
            raise ValueError(f"{path}: is not a .npy file, whatever its name says")
        stream.seek(0)
        return _checked(path, lambda: np.lib.format.read_array(stream, allow_pickle=False))


def _npz(path: Path, key: str | None) -> np.ndarray:
    if not zipfile.is_zipfile(path):
        raise ValueError(f"{path}: is not a .npz file, or a broken one")
    with _checked(path, lambda: np.load(path, allow_pickle=False)) as file:
        held = [name.removesuffix(".npy") for name in file.zip.namelist() if name.endswith(".npy")]
        chosen = _choice(path, key, held)
        found = _checked(path, lambda: file[chosen])
    # numpy hands out the bytes of an entry that is no array.
    if not isinstance(found, np.ndarray):
        raise ValueError(f"{path}: {chosen}: is not an array, whatever its name says")
    return found


def _safetensors(path: Path, key: str | None) -> np.ndarray:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(os.fspath(path), framework="numpy") as file:
            chosen = _choice(path, key, list(file.keys()))
            kind = file.get_slice(chosen).get_dtype()
            if kind not in ("F32", "F64") and not kind.startswith(("I", "U")):
                raise ValueError(f"{path}: {chosen}: dtype {kind} is not supported; use float32 or float64")
            return file.get_tensor(chosen)
    except SafetensorError:
        raise ValueError(f"{path}: is not a .safetensors file, or a broken one") from None


def _choice(path: Path, key: str | None, held: list[str]) -> str:
    if not held:
        raise ValueError(f"{path}: holds no arrays")
    listed = ", ".join(held[:8]) + (f" and {len(held) - 8} more" if len(held) > 8 else "")
    if key is None and len(held) > 1:
        raise ValueError(f"{path}: holds several arrays; name one as {path.name}:NAME, from {listed}")
    if key is not None and key not in held:
        raise ValueError(f"{path}: holds no array {key!r}, but {listed}")
    return held[0] if key is None else key


def _checked(path: Path, read: Callable[[], Any]) -> Any:
    try:
        return read()
    except _BROKEN as error:
        if "allow_pickle" in str(error) or "pickle" in str(error):
            raise ValueError(f"{path}: holds Python objects (pickled), which are not read") from None
        raise ValueError(f"{path}: is not a whole {path.suffix} file: it is broken or cut short") from None


_READERS: Mapping[str, Callable[[Path, str | None], np.ndarray]] = {
    ".npy": _npy,
    ".npz": _npz,
    ".safetensors": _safetensors,
}
