"""Text as token ids: characters, bytes or words."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal

import numpy as np

from kernelprop import door
from kernelprop.training.data.tokens import HELD_OUT, Tokens, tokens

Unit = Literal["character", "byte", "word"]
UNITS = ("character", "byte", "word")


def text(
    training: str,
    validation: str | None = None,
    *,
    unit: Unit = "character",
    vocabulary: int | None = None,
    title: str = "text",
) -> Tokens:
    """A source of a text.

    Args:
        training: what is trained on.
        validation: what is validated on; the last tenth of the text if not given.
        unit: what a token is: a character, a byte of UTF-8, or a word between white space.
        vocabulary: the most ids; the most frequent units get one each, the others share the last.
        title: what it is, for messages.

    Raises:
        ValueError: for an unknown unit and a text of fewer than two tokens.

    >>> source = text("abcabcabcabcabcabcab")
    >>> source.vocabulary, source.training[:4], source.validation
    (3, array([0, 1, 2, 0], dtype=int32), array([0, 1], dtype=int32))
    """
    if unit not in UNITS:
        raise ValueError(f"unit: {unit!r} is unknown; use {', '.join(UNITS)}")
    if vocabulary is not None:
        door.count(vocabulary, "vocabulary", least=2)
    if validation is None:
        cut = len(training) - round(HELD_OUT * len(training))
        training, validation = training[:cut], training[cut:]
    parts = [_split(unit)(part) for part in (training, validation)]
    for part, name in zip(parts, ("training", "validation"), strict=True):
        if len(part) < 2:
            raise ValueError(f"{title}: its {name} part has {len(part)} {unit}s; a text of more is wanted")
    codes, size = _numbered(parts, 256 if unit == "byte" and vocabulary is None else vocabulary, unit)
    return tokens(codes[0], size, validation=codes[1], title=title)


def _split(unit: Unit) -> Callable[[str], Any]:
    readers: dict[str, Callable[[str], Any]] = {
        # Code points as numbers: no Python object for every character of a large text.
        "character": lambda part: np.frombuffer(part.encode("utf-32-le", "surrogatepass"), np.uint32),
        "byte": lambda part: np.frombuffer(part.encode("utf-8", "surrogateescape"), np.uint8),
        "word": str.split,
    }
    return readers[unit]


def _numbered(parts: list[Sequence], most: int | None, unit: Unit) -> tuple[list[np.ndarray], int]:
    """Ids for all parts, units in their own order, those that have none together at the end."""
    if unit == "byte" and most == 256:
        return [np.asarray(part, np.int32) for part in parts], 256
    known = _frequent(parts[0], most)
    if len(known) == most and _has_others(parts, known):
        known = _frequent(parts[0], most, share=True)
    unseen = len(known) if _has_others(parts, known) else None
    size = len(known) + (unseen is not None)
    if unit == "word":
        ids = {word: i for i, word in enumerate(known)}
        return [np.array([ids.get(word, unseen or 0) for word in part], np.int32) for part in parts], size
    table = np.asarray(known)
    return [_look_up(np.asarray(part), table, unseen) for part in parts], size


def _look_up(part: np.ndarray, table: np.ndarray, unseen: int | None) -> np.ndarray:
    place = np.minimum(np.searchsorted(table, part), len(table) - 1)
    found = place if unseen is None else np.where(table[place] == part, place, unseen)
    return found.astype(np.int32)


def _frequent(part: Sequence, most: int | None, *, share: bool = False) -> list:
    """The units that get an id, sorted: all of them, or the most frequent where others must share the last."""
    counts = Counter(dict(zip(*_counted(part), strict=True)))
    if most is None or (len(counts) <= most and not share):
        return sorted(counts)
    ranked = sorted(counts, key=lambda unit: (-counts[unit], unit))
    return sorted(ranked[: most - 1])


def _counted(part: Sequence) -> tuple[Iterable, Iterable]:
    if isinstance(part, np.ndarray):
        return np.unique(part, return_counts=True)
    counts = Counter(part)
    return counts.keys(), counts.values()


def _has_others(parts: list[Sequence], known: list) -> bool:
    kept = set(known)
    return any(unit not in kept for part in parts for unit in _counted(part)[0])
