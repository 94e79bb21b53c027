"""What a study is: a frozen question whose hash names its record, answered point by point."""

import hashlib
import json
import shlex
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, ClassVar, Protocol, Self

import numpy as np

from analysis.records import FOLDER, Record, files_of, read_record

DIGITS = 10  # of the hash, in the record's name


class Study(Protocol):
    """A frozen dataclass of plain fields: numbers, words, and tuples of them.

    A point is a piece of work that is done on its own, a setting or a row of a sweep; ``measure`` is a pure function
    of the fields and the point, and takes its randomness from seeds among the fields.
    """

    name: ClassVar[str]
    question: ClassVar[str]
    __dataclass_fields__: ClassVar[dict[str, Any]]

    @classmethod
    def quick(cls) -> Self:
        """The same question at sizes of seconds."""
        ...

    def points(self) -> tuple[str, ...]:
        """The names of the points, all different."""
        ...

    def measure(self, point: str) -> Mapping[str, Any]:
        """Arrays by name, for one point."""
        ...


@dataclass(frozen=True, eq=False)
class Found:
    """What a study found, read back from its record.

    Attributes:
        study: the question.
        record: the record.
    """

    study: Any
    record: Record

    def at(self, point: str) -> dict[str, np.ndarray]:
        """The arrays of one point, by name."""
        start = f"{point}:"
        found = {key[len(start) :]: array for key, array in self.record.arrays.items() if key.startswith(start)}
        if not found:
            raise KeyError(f"{record_name(self.study)}: no point {point!r}")
        return found

    def stack(self, name: str) -> np.ndarray:
        """One array of all points, stacked in their order."""
        return np.stack([self.record.arrays[f"{point}:{name}"] for point in self.study.points()])


def record_name(study: Study) -> str:
    """The study's name and the hash of its fields: another question has another record.

    >>> from analysis.noci2022_gradients import Spec
    >>> record_name(Spec()) == record_name(Spec(seed=1))
    False
    """
    text = json.dumps({"study": study.name, "spec": asdict(study)}, sort_keys=True, allow_nan=False)
    return f"{study.name}-{hashlib.sha256(text.encode()).hexdigest()[:DIGITS]}"


def is_recorded(study: Study, folder: Path = FOLDER) -> bool:
    """Whether both files of the record are there."""
    return all(file.is_file() for file in files_of(record_name(study), folder))


def read(study: Study, folder: Path = FOLDER) -> Found:
    """Read a study's record.

    Raises:
        ValueError: where it is missing, with the command that makes it.
    """
    return Found(study, read_record(record_name(study), folder, command(study)))


def command(study: Study) -> str:
    """The command that makes this record.

    >>> from analysis.noci2022_gradients import Spec
    >>> command(Spec(draws=8))
    'python -m analysis noci2022_gradients --set draws=8'
    """
    kind: Any = type(study)
    start = f"python -m analysis {study.name}"
    if study == kind.quick():
        return f"{start} --quick"
    file = getattr(study, "file", "")
    usual = kind.of_file(Path(file)) if file else kind()
    start += f" --input {shlex.quote(file)}" if file else ""
    changed = [field.name for field in fields(kind) if getattr(study, field.name) != getattr(usual, field.name)]
    return " ".join([start, *(f"--set {_assignment(study, name)}" for name in changed)])


def _assignment(study: Study, name: str) -> str:
    value = getattr(study, name)
    return shlex.quote(f"{name}={','.join(map(str, value)) if isinstance(value, tuple) else value}")
