"""A study's fields from words on a command line."""

from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, TypeVar

S = TypeVar("S")


def asked(kind: Any, file: Path | None, quick: bool, assignments: Sequence[str]) -> Any:
    """The study of a kind that a command line asks for: the usual one, the quick one or that of a file.

    Raises:
        ValueError: for a file where the kind takes none or beside ``quick``, and as `with_fields`.
    """
    if file is None:
        return with_fields(kind.quick() if quick else kind(), assignments)
    if not hasattr(kind, "of_file"):
        raise ValueError(f"--input: {kind.name} takes no file")
    if quick:
        raise ValueError("--quick: a study of --input has no quick form; --set makes its fields smaller")
    return with_fields(kind.of_file(file), assignments)


def with_fields(study: S, assignments: Sequence[str]) -> S:
    """The study with ``field=value`` set; tuples are lists with commas, and a value has the type of the one before.

    Raises:
        ValueError: naming the field that is unknown or the value that doesn't fit.

    >>> from analysis.noci2022_gradients import Spec
    >>> with_fields(Spec(), ["draws=8", "lengths=4,8"]).lengths
    (4, 8)
    """
    known = [field.name for field in fields(study)]  # pyright: ignore[reportArgumentType]
    for assignment in assignments:
        name, equals, words = assignment.partition("=")
        if not equals or name not in known:
            raise ValueError(f"--set {assignment}: a field=value is wanted; the fields are {', '.join(known)}")
        value = _value(getattr(study, name), words, name)
        study = replace(study, **{name: value})  # pyright: ignore[reportArgumentType, reportCallIssue]
    return study


def _value(now: Any, words: str, name: str) -> Any:
    if isinstance(now, tuple):
        if not words or not now:
            raise ValueError(f"--set {name}: a list without entries")
        return tuple(_value(now[0], word.strip(), name) for word in words.split(","))
    if isinstance(now, bool):
        if words not in ("True", "False"):
            raise ValueError(f"--set {name}: True or False is wanted, {words!r} was given")
        return words == "True"
    try:
        return type(now)(words)
    except ValueError:
        kind = {int: "a whole number", float: "a number"}.get(type(now), type(now).__name__)
        raise ValueError(f"--set {name}: {kind} is wanted, {words!r} was given") from None
