"""The command ``kernelprop``: the library's main job without a line of Python."""

import os
import sys
from collections.abc import Sequence
from typing import Any

READER_GONE, USAGE, INTERRUPTED = 1, 2, 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code.

    0; 2 for bad input (one line on stderr); 130 when interrupted; 1, without a word, when the reader of the output
    went away early.

    Args:
        argv: the arguments without the command's name; those of the process if None.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    _never_fail_to_print()
    try:
        code = _run(arguments or ["--help"])
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        # The reader has gone; Python would complain once more when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return READER_GONE
    except KeyboardInterrupt:
        return _fail("by Ctrl-C", INTERRUPTED, "interrupted")
    except OSError as error:
        return _fail(f"{error.filename}: {error.strerror}" if error.filename else str(error))
    except ValueError as error:
        return _fail(str(error))
    except MemoryError:
        return _fail("the memory does not suffice")


def _run(arguments: list[str]) -> int:
    import typer

    from kernelprop.cli.app import app

    # The class of all usage errors has no public name of its own.
    usage_error: Any = next(base for base in typer.BadParameter.__mro__ if base.__name__ == "ClickException")
    try:
        code = app(arguments, standalone_mode=False, prog_name="kernelprop")
    except usage_error as error:
        return _fail(error.format_message())
    except typer.Abort:
        return _fail("by Ctrl-C", INTERRUPTED, "interrupted")
    if code == INTERRUPTED:  # typer has caught the Ctrl-C itself
        return _fail("by Ctrl-C", INTERRUPTED, "interrupted")
    return code if isinstance(code, int) else 0


def _fail(message: str, code: int = USAGE, label: str = "error") -> int:
    from kernelprop.cli.console import complain

    complain(message, label)
    return code


def _never_fail_to_print() -> None:
    """Let a stream of a narrow encoding print ``?`` for what it lacks rather than stop."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="replace")
