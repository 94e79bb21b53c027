"""The suggested networks as descriptions: on the page, or in files beside it where they hold arrays."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernelprop.architecture import Transformer
from kernelprop.descriptions.writing import as_toml, description_tables, save_description
from kernelprop.diagnosis.diagnose import Diagnosis


@dataclass(frozen=True, kw_only=True)
class Fix:
    """The description of one suggested network: exactly one of the three.

    Attributes:
        text: the TOML.
        file: the name of the file that it goes to, its arrays in an ``.npz`` of the same name.
        refusal: why there is none.
    """

    text: str | None = None
    file: str | None = None
    refusal: str | None = None

    @property
    def files(self) -> tuple[str, ...]:
        """The names of its files."""
        return () if self.file is None else (self.file, Path(self.file).with_suffix(".npz").name)


def fixes(diagnosis: Diagnosis, kernel0: Any, stem: str | None = None) -> tuple[Fix, ...]:
    """A description for each suggestion, in their order.

    Args:
        diagnosis: what was found and tried.
        kernel0: the input kernel, ``(T, T)``.
        stem: what the files are called after, ``STEM-fix-1.toml`` for the first; without it there are none.
    """
    networks = [attempt.after.model for attempt in diagnosis.suggestions if attempt.after is not None]
    return tuple(fix_of(model, kernel0, stem and f"{stem}-fix-{n}.toml") for n, model in enumerate(networks, 1))


def fix_of(model: Transformer, kernel0: Any, file: str | None = None) -> Fix:
    """A network's description: a text where it holds no arrays, else that of the file.

    >>> import kernelprop as kp
    >>> fix_of(kp.Transformer(kp.espa(4, 2)), None).text.splitlines()[0]
    '[attention]'
    >>> fix_of(kp.Transformer(kp.dense([[0.5, 0.5], [0.0, 1.0]])), None, "fix.toml").files
    ('fix.toml', 'fix.npz')
    """
    try:
        tables, arrays = description_tables(model, kernel0, None)
    except ValueError as error:  # a function of one's own
        return Fix(refusal=str(error))
    if not arrays:
        return Fix(text=as_toml(tables))
    if file is None:
        return Fix(refusal=f"its arrays ({', '.join(arrays)}) need a file, which kp.save_description writes")
    return Fix(file=file)


def write_fixes(folder: Path, diagnosis: Diagnosis, found: Sequence[Fix], kernel0: Any) -> list[Path]:
    """Write those that go to files into a folder, each file whole; return the files.

    Raises:
        ValueError: naming the path, when it can't be written.
    """
    written = []
    for attempt, fix in zip(diagnosis.suggestions, found, strict=True):
        if attempt.after is not None and fix.file is not None:
            written += save_description(folder / fix.file, attempt.after.model, kernel0)
    return written
