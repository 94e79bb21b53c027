"""Entries of a TOML table: what may stand there, read or refused in one line that names file, table and key."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from kernelprop import array_files
from kernelprop.architecture import UNSUPPORTED


@dataclass(frozen=True)
class Place:
    """Where in a file something stands, for messages and for files named beside it."""

    file: Path
    table: str = ""
    key: str = ""

    def at(self, key: str) -> "Place":
        """The place of an entry of this table, or of an entry of an entry."""
        return replace(self, key=f"{self.key}.{key}" if self.key else key)

    def error(self, message: object) -> ValueError:
        """One line that says where and what."""
        where = [f"[{self.table}]"] if self.table else []
        where += [self.key] if self.key else []
        return ValueError(
            ": ".join([str(self.file), " ".join(where), str(message)] if where else [str(self.file), str(message)])
        )

    @contextmanager
    def blame(self, given: Collection[str] = (), called: "Called | None" = None) -> Iterator[None]:
        """Add the place to what the library says is wrong with an entry, under the name that the file has for it.

        Args:
            given: the entries of the table here. A message that begins with one of them, or with it behind the name
                of the library's own function, is about that entry.
            called: how the library calls entries that have other names here.
        """
        try:
            yield
        except ValueError as error:
            raise self.blamed(str(error), given, called) from None

    def blamed(self, message: str, given: Collection[str] = (), called: "Called | None" = None) -> ValueError:
        """The error that `blame` raises for a message of the library."""
        place, said = self._named(message, given, called or {})
        return place.error(said)

    def _named(self, message: str, given: Collection[str], called: "Called") -> tuple["Place", str]:
        """The entry that a message is about, and what is left of it: nothing that the place says already."""
        words = message.split(": ")
        said = 0
        for number, word in enumerate(words[:-1][:2]):
            for entry in (*called.get(word, ()), word):
                if entry in given:
                    return self.at(entry), _predicate(entry, ": ".join(words[number + 1 :]))
            if word in (self.table, self.key.rpartition(".")[2]):
                said = number + 1
        rest = ": ".join(words[said:])
        subject = rest.partition(" is ")[0]
        return (self.at(subject), _predicate(subject, rest)) if subject in given else (self, rest)


def _predicate(entry: str, message: str) -> str:
    """What is said of an entry, whose name stands before it: of ``gamma is -1`` for ``gamma0`` too."""
    subject, verb, rest = message.partition(" is ")
    return f"is {rest}" if verb and entry.startswith(subject) else message


Reader = Callable[[Any, Place], Any]
# A name in the library's messages, and the entries of a description that may stand behind it.
Called = Mapping[str, tuple[str, ...]]


@dataclass(frozen=True)
class Kind:
    """One thing that a table can describe: how it is made, from which entries, and which of them must be there.

    ``called`` tells how messages of ``make`` call entries that have other names in a description.
    """

    make: Callable[..., Any]
    entries: Mapping[str, Reader]
    required: Collection[str] = ()
    called: Called = field(default_factory=dict)


def read(table: Any, entries: Mapping[str, Reader], place: Place, required: Iterable[str] = ()) -> dict[str, Any]:
    """Read a table whose entries are known by name.

    Raises:
        ValueError: for what is no table, for an unknown entry, with the known ones, and for a missing one.
    """
    if not isinstance(table, Mapping):
        raise place.error(f"a table is wanted, {shown(table)} was given")
    for key in table:
        if key not in entries:
            raise place.at(key).error(unknown(key, entries, "entries"))
    for key in required:
        if key not in table:
            raise place.at(key).error("is missing")
    return {key: entries[key](value, place.at(key)) for key, value in table.items()}


def read_kind(table: Any, kinds: Mapping[str, Kind], place: Place, default: str | None = None) -> Any:
    """Read a table whose ``kind`` says what it describes, and make that.

    Raises:
        ValueError: for an unknown kind, with the known ones; for entries as for `read`; and what its maker refuses.
    """
    if not isinstance(table, Mapping):
        raise place.error(f"a table is wanted, {shown(table)} was given")
    name = one_of(kinds)(table.get("kind", default), place.at("kind"))
    kind = kinds[name]
    numbers = read(table, {"kind": text, **kind.entries}, place, kind.required)
    numbers.pop("kind", None)
    with place.blame(table, kind.called):
        return kind.make(**numbers)


def unknown(name: str, known: Iterable[str], what: str) -> str:
    """Say that a name is not known, and either why it is not supported or what is known."""
    if name in UNSUPPORTED:
        return f"is not supported: {UNSUPPORTED[name]}"
    return f"is unknown; {what} here: {', '.join(sorted(known))}"


def one_of(names: Iterable[str]) -> Reader:
    """A reader of one of a few words."""

    def choice(value: Any, place: Place) -> str:
        if value is None:
            raise place.error(f"is missing; one of {', '.join(names)}")
        if not isinstance(value, str) or value not in names:
            if isinstance(value, str) and value in UNSUPPORTED:
                raise place.error(f"{value} is not supported: {UNSUPPORTED[value]}")
            raise place.error(f"{shown(value)} is unknown; one of {', '.join(names)}")
        return value

    return choice


def text(value: Any, place: Place) -> str:
    """A string."""
    return _typed(value, str, "text", place)


def flag(value: Any, place: Place) -> bool:
    """``true`` or ``false``."""
    return _typed(value, bool, "true or false", place)


def whole(value: Any, place: Place) -> int:
    """A whole number."""
    if isinstance(value, bool):
        raise place.error(f"a whole number is wanted, {shown(value)} was given")
    return _typed(value, int, "a whole number", place)


def number(value: Any, place: Place) -> float:
    """A number; ``inf`` is left to whoever uses it, ``nan`` is none."""
    if isinstance(value, bool) or value != value:
        raise place.error(f"a number is wanted, {shown(value)} was given")
    return float(_typed(value, int | float, "a number", place))


def finite(value: Any, place: Place) -> float:
    """A number that is not infinite."""
    found = number(value, place)
    if not np.isfinite(found):
        raise place.error(f"a finite number is wanted, {shown(value)} was given")
    return found


def numbers(value: Any, place: Place) -> np.ndarray:
    """A number, or a list of them (one a layer): float64 of shape ``()`` or ``(n,)``."""
    if isinstance(value, list):
        return np.array([number(item, place) for item in value], np.float64)
    return np.asarray(number(value, place))


def array(value: Any, place: Place) -> np.ndarray:
    """An array: the name of a file, ``FILE`` or ``FILE:NAME``, beside the description; or nested lists."""
    if isinstance(value, list):
        with place.blame():
            return _nested(value)
    name = text(value, place)
    with place.blame():
        return array_files.array(str(place.file.parent / name))


def _nested(value: list) -> np.ndarray:
    try:
        found = np.array(value)
    except ValueError:
        raise ValueError("the rows have different lengths") from None
    if found.dtype.kind not in "iufbU":
        raise ValueError("numbers are wanted")
    return found


def _typed(value: Any, types: Any, wanted: str, place: Place) -> Any:
    if not isinstance(value, types):
        raise place.error(f"{wanted} is wanted, {shown(value)} was given")
    return value


def shown(value: Any) -> str:
    """A value as a message shows it: as TOML writes it, cut short.

    >>> shown(True), shown([1, 2]), shown("word")
    ('true', '[1, 2]', "'word'")
    """
    if isinstance(value, Mapping):
        return "a table"
    words = str(value).lower() if isinstance(value, bool) else repr(value)
    return words if len(words) <= 40 else f"{words[:36]} ..."
