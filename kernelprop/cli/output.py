"""The output folder: checked before anything is computed, filled whole or not at all."""

import os
import secrets
import shutil
from collections.abc import Callable
from pathlib import Path

# Every name that the command writes. A run takes away what an earlier one left under these names, so that no
# picture stays beside numbers that it does not show.
NUMBERS = ("evolution.npz", "evolution.csv", "evolution.json", "measured.csv")
PICTURES = ("rank-collapse.png", "kernels.png", "spectrum.png", "measured.png")


def check_folder(folder: Path) -> None:
    """Make sure that a folder can be written, without leaving anything behind.

    Raises:
        ValueError: naming the folder and what is in the way.
    """
    existing = folder.absolute()
    while not existing.exists() and existing != existing.parent:
        existing = existing.parent
    if not existing.is_dir():
        raise ValueError(f"--out {folder}: {existing} is not a folder")
    probe = existing / f".kernelprop-{secrets.token_hex(4)}"
    try:
        # Permission bits don't tell of a read-only disk; making something does.
        probe.mkdir()
        probe.rmdir()
    except OSError as error:
        raise ValueError(f"--out {folder}: can't be written: {error.strerror or error}") from None


def fill(folder: Path, write: Callable[[Path], object], names: tuple[str, ...]) -> list[Path]:
    """Let ``write`` fill a temporary folder, then move its files into ``folder``; return them.

    Files of the given names that were not written again are removed: they are an earlier run's.

    Raises:
        ValueError: naming the folder, when it can't be written; it is then as it was.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        staging = folder / f".kernelprop-{secrets.token_hex(4)}"
        staging.mkdir()
    except OSError as error:
        raise ValueError(f"--out {folder}: can't be written: {error.strerror or error}") from None
    try:
        write(staging)
        written = sorted(path.name for path in staging.iterdir())
        for name in written:
            os.replace(staging / name, folder / name)
        for name in set(names) - set(written):
            (folder / name).unlink(missing_ok=True)
    except OSError as error:
        raise ValueError(f"--out {folder}: can't be written: {error.strerror or error}") from None
    except ValueError as error:  # a file of ours that could not be written, under its temporary name
        raise ValueError(str(error).replace(str(staging), str(folder))) from None
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    return [folder / name for name in written]
