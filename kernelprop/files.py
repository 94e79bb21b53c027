"""Files that are written whole or not at all."""

import os
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO


def write_whole(path: str | os.PathLike[str], write: Callable[[BinaryIO], object]) -> None:
    """Let ``write`` fill a temporary file beside ``path``, then rename it: readers never see a part of it.

    Raises:
        ValueError: naming the path, when its folder is missing or can't be written.
    """
    target = Path(path)
    if not target.parent.is_dir():
        raise ValueError(f"{target}: the folder {target.parent} does not exist")
    if target.is_dir():
        raise ValueError(f"{target}: is a folder; a file name is wanted")
    part = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
    try:
        with part.open("xb") as stream:
            write(stream)
        part.replace(target)
    except OSError as error:
        raise ValueError(f"{target}: can't be written: {error.strerror or error}") from error
    finally:
        part.unlink(missing_ok=True)
