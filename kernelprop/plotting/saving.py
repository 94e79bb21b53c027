"""Figures to files, whole or not at all."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kernelprop.files import write_whole
from kernelprop.plotting.style import DOTS_PER_INCH, house_style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# No dates: the same figure makes the same file.
_METADATA: dict[str, dict[str, Any]] = {"png": {}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}


def save_figure(figure: "Figure", path: str | os.PathLike[str]) -> None:
    """Write a figure as PNG, SVG or PDF, as the file's name says.

    Raises:
        ValueError: for another ending, or a folder that is missing or can't be written.
    """
    kind = Path(path).suffix[1:].lower()
    if kind not in _METADATA:
        raise ValueError(f"{os.fspath(path)}: a figure is written as .png, .svg or .pdf")

    def write(stream: Any) -> None:
        with house_style():
            figure.savefig(stream, format=kind, dpi=DOTS_PER_INCH, metadata=_METADATA[kind])

    write_whole(path, write)
