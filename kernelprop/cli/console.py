"""Where the command prints: colours on a terminal only, and no line cut where there is none."""

import sys
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from rich.console import Console

# Into a pipe or a file there is no edge to wrap at; this is wide enough for every column.
WIDE = 160


def console(stream: TextIO | None = None) -> "Console":
    """Return a console on stdout, or on another stream."""
    from rich.console import Console

    target = stream or sys.stdout
    width: Any = None if target.isatty() else WIDE
    return Console(file=target, width=width)


def complain(message: str, label: str = "error") -> None:
    """Print one line on stderr, whatever line breaks the message has."""
    from rich.text import Text

    colour = "bold red" if label == "error" else "yellow"
    line = Text.assemble((f"{label}:", colour), " ", " ".join(message.split()))
    console(sys.stderr).print(line, soft_wrap=True)
