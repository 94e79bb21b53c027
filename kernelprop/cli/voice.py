"""How a command speaks: a table for people, strict JSON for programs, or nothing; the same two switches everywhere."""

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kernelprop.cli.console import console
from kernelprop.cli.progress import sign_of_life, stages

if TYPE_CHECKING:
    from rich.console import Console

Json = Annotated[
    bool, typer.Option("--json", help="Print strict JSON instead of text, for programs.", show_default=False)
]
Quiet = Annotated[bool, typer.Option("--quiet", help="Print nothing but errors.", show_default=False)]


@dataclass(frozen=True)
class Voice:
    """What ``--json`` and ``--quiet`` ask for; JSON is printed even where all else is quiet."""

    json: bool = False
    quiet: bool = False

    @property
    def silent(self) -> bool:
        """Whether nothing is told of what is going on."""
        return self.json or self.quiet

    def working(self, message: str) -> AbstractContextManager[Callable[[], None]]:
        """A sign of life for what may take a while."""
        return sign_of_life(message, quiet=self.silent)

    @contextmanager
    def stages(self, message: str) -> Iterator[Callable[[str], None]]:
        """A sign of life that says what comes next."""
        with stages(message, quiet=self.silent) as tell:
            yield tell

    def answer(self, content: Callable[[], Mapping[str, Any]], tell: "Callable[[Console], object]") -> None:
        """Print what came out.

        Args:
            content: makes what ``--json`` prints; NaN is ``null``, infinity ``"inf"``.
            tell: prints the same for people.
        """
        if self.json:
            sys.stdout.write(strict_json(content()) + "\n")
        elif not self.quiet:
            tell(console())


def strict_json(content: Any) -> str:
    """Nested mappings, lists and numbers as JSON that every parser takes.

    >>> strict_json({"a": [float("nan"), float("inf")]})
    '{\\n "a": [\\n  null,\\n  "inf"\\n ]\\n}'
    """
    return json.dumps(_strict(content), allow_nan=False, ensure_ascii=True, indent=1)


def say(stream: "Console", text: str, style: str | None = None) -> None:
    """Print a line as it is: wrapped at words on a terminal, in one piece into a pipe."""
    stream.print(text, style=style, highlight=False, markup=False, soft_wrap=not stream.is_terminal)


def _strict(value: Any) -> Any:
    from kernelprop.tables import strict

    if isinstance(value, Mapping):
        return {key: _strict(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_strict(item) for item in value]
    return strict(value)
