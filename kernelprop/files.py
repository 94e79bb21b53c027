"""Files that are written whole or not at all."""

import os
import secrets
import zipfile
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

# What numpy and zipfile raise for an archive of arrays that is broken, foreign, encrypted or packed in unknown ways.
BROKEN_ARCHIVE = (ValueError, TypeError, KeyError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error)


def write_whole(path: str | os.PathLike[str], write: Callable[[BinaryIO], object]) -> None:
    """Let ``write`` fill a temporary file beside ``path``, then rename it: readers never see a part of it.

    Raises:
        ValueError: naming the path, when its folder is missing or can't be written.
    """
    target = Path(path)
    try:
        if not target.parent.is_dir():
            raise ValueError(f"{target}: the folder {target.parent} does not exist")
        if target.is_dir():
            raise ValueError(f"{target}: is a folder; a file name is wanted")
    except OSError as error:  # a name that is too long
        raise ValueError(f"{target}: can't be written: {error.strerror or error}") from error
    # Not longer than the name itself need be: names end at 255 bytes.
    part = target.with_name(f".{secrets.token_hex(8)}.part")
    try:
        with part.open("xb") as stream:
            write(stream)
        part.replace(target)
    except OSError as error:
        raise ValueError(f"{target}: can't be written: {error.strerror or error}") from error
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)
