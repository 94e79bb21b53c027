"""Records of studies: what was asked, what came out, and on what it was computed.

A record is two files, ``NAME.npz`` with arrays and ``NAME.json`` with everything else, each written whole.
"""

import json
import os
import platform
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

import kernelprop
from kernelprop.files import BROKEN_ARCHIVE, write_whole

FOLDER = Path(__file__).parent / "records"


class Record(NamedTuple):
    """A study's record, read back."""

    words: dict[str, Any]
    arrays: dict[str, np.ndarray]


def write_record(
    name: str, words: Mapping[str, Any], arrays: Mapping[str, np.ndarray], seconds: float, folder: Path = FOLDER
) -> list[Path]:
    """Write a record with its environment: arrays first, so that words never stand without them."""
    folder.mkdir(exist_ok=True)
    files = files_of(name, folder)
    content = {"study": name, **words, "environment": environment(), "seconds": round(seconds, 1)}
    text = json.dumps(content, indent=1, allow_nan=False) + "\n"
    write_whole(files[0], lambda stream: np.savez_compressed(stream, allow_pickle=False, **arrays))
    write_whole(files[1], lambda stream: stream.write(text.encode()))
    return files


def read_record(name: str, folder: Path = FOLDER, command: str | None = None) -> Record:
    """Read a record.

    Raises:
        ValueError: where it is missing or broken, with the command that makes it; ``python -m analysis.NAME`` if none
            is given.
    """
    arrays_file, words_file = files_of(name, folder)
    made = f"{command or f'python -m analysis.{name}'} makes it"
    for file in (words_file, arrays_file):
        if not file.is_file():
            raise ValueError(f"{file}: no such record; {made}")
    try:
        # A stream of our own: numpy leaves one open where the archive is broken.
        with arrays_file.open("rb") as stream, np.load(stream, allow_pickle=False) as stored:
            arrays = dict(stored)
    except BROKEN_ARCHIVE:
        raise ValueError(f"{arrays_file}: no record, or a broken one; {made} anew") from None
    try:
        words = json.loads(words_file.read_text(encoding="utf-8"))
    except ValueError:
        raise ValueError(f"{words_file}: no record, or a broken one; {made} anew") from None
    return Record(words, arrays)


def files_of(name: str, folder: Path = FOLDER) -> list[Path]:
    """Where a record is, or would be: its arrays and its words."""
    return [folder / f"{name}.npz", folder / f"{name}.json"]


def environment() -> dict[str, Any]:
    """With what, and on what, the numbers were computed."""
    return {
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "kernelprop": kernelprop.__version__,
        "jax": jax.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
        "device": jax.devices()[0].device_kind,
        "processor": platform.machine(),
        "cores": os.cpu_count(),
    }
