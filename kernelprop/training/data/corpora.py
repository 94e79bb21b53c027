"""Text from files that the user has: any text, WikiText-103, C4."""

import gzip
import io
import json
import os
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, TextIO

from kernelprop.training.data.text import Unit, text
from kernelprop.training.data.tokens import Tokens

Part = Literal["training", "validation"]

# How the files of known corpora begin, by part.
NAMES: dict[Part, tuple[str, ...]] = {
    "training": ("wiki.train.", "c4-train.", "train."),
    "validation": ("wiki.valid.", "c4-validation.", "valid.", "validation."),
}
JSON_LINES = (".json", ".jsonl", ".json.gz", ".jsonl.gz")


def corpus(
    path: str | os.PathLike[str],
    *,
    unit: Unit = "character",
    vocabulary: int | None = None,
    characters: int | None = None,
) -> Tokens:
    """A source of a user's text.

    Args:
        path: a text file in UTF-8; a file of JSON lines with a ``text`` each (C4's), also packed by gzip; or a folder
            with a training and a validation part: WikiText-103's (``wiki.train.tokens``, ``wiki.valid.tokens``), C4's
            (``c4-train.*.json.gz``, ``c4-validation.*.json.gz``), or ``train.*`` and ``valid.*``.
        unit: ``"character"``, ``"byte"`` or ``"word"``.
        vocabulary: the most ids, as for `text`.
        characters: the most characters to read of the training part; a tenth of it of the validation part.

    Raises:
        ValueError: naming the file, when it is missing, can't be read, or has no text.

    >>> corpus("no-such-file.txt")
    Traceback (most recent call last):
    ValueError: no-such-file.txt: no such file
    """
    place = Path(path)
    if place.is_dir():
        shares = {"training": characters, "validation": None if characters is None else max(characters // 10, 2)}
        parts: list[str | None] = [
            "\n".join(_limited(_files(place, part), shares[part])) for part in ("training", "validation")
        ]
    elif place.is_file():
        parts = ["\n".join(_limited([place], characters)), None]
    else:
        raise ValueError(f"{place}: no such file")
    return text(str(parts[0]), parts[1], unit=unit, vocabulary=vocabulary, title=place.name or str(place))


def _files(folder: Path, part: Part) -> list[Path]:
    found = sorted(file for file in folder.iterdir() if file.name.startswith(NAMES[part]) and file.is_file())
    if not found:
        names = " or ".join(f"{name}*" for name in NAMES[part])
        raise ValueError(f"{folder}: no {part} part; a file named {names} is wanted")
    return found


def _limited(files: list[Path], most: int | None) -> list[str]:
    """The texts of files in turn, until there are enough characters."""
    texts: list[str] = []
    left = most
    for file in files:
        read = _read(file, left)
        texts.append(read)
        left = None if left is None else left - len(read)
        if left is not None and left <= 0:
            break
    return texts


def _read(file: Path, most: int | None) -> str:
    reader: Callable[[TextIO, int | None], str] = _json_lines if file.name.endswith(JSON_LINES) else _plain
    try:
        with file.open("rb") as raw:
            unpacked: Any = gzip.GzipFile(fileobj=raw) if file.suffix == ".gz" else raw
            with io.TextIOWrapper(unpacked, encoding="utf-8") as stream:
                return reader(stream, most)
    except UnicodeDecodeError:
        raise ValueError(f"{file}: not a text in UTF-8") from None
    except (gzip.BadGzipFile, EOFError, zlib.error):
        raise ValueError(f"{file}: not packed by gzip, or broken") from None
    except OSError as error:
        raise ValueError(f"{file}: can't be read: {error.strerror or error}") from None


def _plain(stream: TextIO, most: int | None) -> str:
    return stream.read() if most is None else stream.read(most)


def _json_lines(stream: TextIO, most: int | None) -> str:
    texts, read = [], 0
    for number, line in enumerate(stream, start=1):
        try:
            words = json.loads(line)["text"]
            if not isinstance(words, str):
                raise TypeError("no text")
            texts.append(words)
            read += len(words)
        except (ValueError, KeyError, TypeError):
            raise ValueError(f"{getattr(stream, 'name', 'file')}: line {number}: no JSON object with a text") from None
        if most is not None and read >= most:
            break
    return "\n".join(texts)[:most]
