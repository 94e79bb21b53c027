"""``kernelprop report``: a network's diagnosis as one HTML file."""

import re
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kernelprop.cli.console import complain
from kernelprop.cli.voice import Json, Quiet, Voice, say

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rich.console import Console

    from kernelprop.diagnosis.diagnose import Attempt, Diagnosis
    from kernelprop.diagnosis.examination import Examination
    from kernelprop.report.fixes import Fix


def report(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="DESCRIPTION",
            help="A description (.toml), or a result that has one (.npz).",
            show_default=False,
        ),
    ],
    out: Annotated[
        Path, typer.Option(help="The file to write (kernelprop-report.html).", metavar="FILE", show_default=False)
    ] = Path("kernelprop-report.html"),
    cotangent: Annotated[
        str,
        typer.Option(
            help="Where the loss reads: all positions (default), the last, or their mean.",
            metavar="all|last|mean",
            show_default=False,
        ),
    ] = "all",
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Say what is wrong with a network, and what would fix it, on one HTML page.

    Does the rank collapse, does the diagonal grow or shrink, are queries dead in
    bfloat16? Each remedy (residual scale, signal-preserving attention, shaped
    activation, temperature) is tried, with the numbers before and after. The page
    has its charts, heat maps and the fixes' descriptions in it and needs no
    network; a fix with arrays of its own goes to files beside it.

    [bold]Examples[/]

    kernelprop report network.toml
    kernelprop report network.toml --out before-training.html --cotangent last
    kernelprop report kernelprop-output/evolution.npz --json
    """
    from kernelprop import __version__
    from kernelprop.cli.described import read_file
    from kernelprop.cli.interrupt import ends_at_once
    from kernelprop.cli.output import check_folder
    from kernelprop.cotangents import resolve
    from kernelprop.diagnosis.diagnose import diagnose
    from kernelprop.report.fixes import fixes, write_fixes
    from kernelprop.report.heatmaps import kept_depths
    from kernelprop.report.page import page, write_page

    _check(out, file)
    check_folder(out.parent)
    voice = Voice(json, quiet)
    with voice.working("reading"):
        described = read_file(file)
        resolve(cotangent, described.model.length)
    model, kernel = described.model, described.kernel0
    with _stages(voice) as tell, ends_at_once(lambda: complain("by Ctrl-C", "interrupted")):
        found = diagnose(model, kernel, cotangent, kept_depths(model.depth), progress=tell)
    with voice.working("writing"):
        described_fixes = fixes(found, kernel, out.stem)
        text = page(described.name, found, kernel, __version__, described.notes, described_fixes)
        beside = write_fixes(out.parent, found, described_fixes, kernel)
        write_page(out, text)
    answer = _Answer(described.name, found, described.notes, described_fixes, (out, *beside))
    voice.answer(lambda: _content(answer), lambda stream: _print(answer, stream))


@dataclass(frozen=True, eq=False)
class _Answer:
    """What the command tells: the network's name, the diagnosis, remarks, the fixes, and the files that it wrote."""

    name: str
    found: "Diagnosis"
    notes: tuple[str, ...]
    fixes: "tuple[Fix, ...]"
    written: tuple[Path, ...]


@contextmanager
def _stages(voice: Voice) -> "Iterator[Callable[[str], object]]":
    """What tells each stage: in place on a terminal, elsewhere a line as soon as it begins."""
    if sys.stderr.isatty() or voice.silent:
        with voice.stages("computing") as tell:
            yield tell
    else:
        yield lambda stage: print(f"computing: {stage} ...", file=sys.stderr, flush=True)


def _check(out: Path, file: Path) -> None:
    if out.suffix.lower() not in (".html", ".htm"):
        raise ValueError(f"--out {out}: a name that ends in .html is wanted")
    if not out.parent.is_dir():
        raise ValueError(f"--out {out}: the folder {out.parent} does not exist")
    if out.is_dir():
        raise ValueError(f"--out {out}: is a folder; a file name is wanted")
    if re.fullmatch(rf"{re.escape(out.stem)}-fix-\d+", file.stem) and file.resolve().parent == out.resolve().parent:
        raise ValueError(f"--out {out}: its fixes could be written over {file}, which is read; give another name")


def _content(answer: _Answer) -> dict[str, Any]:
    found = answer.found
    return {
        "format": "kernelprop diagnosis",
        "name": answer.name,
        "healthy": found.healthy,
        "findings": [finding.as_data() for finding in found.before.findings],
        "notes": answer.notes,
        "numbers": found.before.numbers(),
        "judged_by": _judged_by(found.before),
        "suggestions": [
            _attempt(attempt) | {"description": fix.text, "description_files": list(fix.files)}
            for attempt, fix in zip(found.suggestions, answer.fixes, strict=True)
        ],
        "tried": [_attempt(attempt) for attempt in found.attempts if attempt not in found.suggestions],
        "written": str(answer.written[0]),
        "files": [str(file) for file in answer.written],
    }


def _attempt(attempt: "Attempt") -> dict[str, Any]:
    return {
        "remedies": list(attempt.remedies),
        "changes": list(attempt.changes),
        "cures": attempt.cures,
        "refusal": attempt.refusal,
        "judged_by": [] if attempt.after is None else _judged_by(attempt.after),
        "after": None if attempt.after is None else attempt.after.numbers(),
        "findings": [] if attempt.after is None else [finding.as_data() for finding in attempt.after.findings],
    }


def _judged_by(examination: "Examination") -> list[dict[str, Any]]:
    return [margin.as_data() for margin in examination.margins]


def _print(answer: _Answer, stream: "Console") -> None:
    from kernelprop.report.sections import judged_by, sentence

    found = answer.found
    if found.healthy:
        say(stream, f"{answer.name}: keeps its signal; nothing found that calls for a remedy", "bold green")
        say(stream, judged_by(found.before))
    for finding in found.before.findings:
        label, style = ("problem", "bold red") if finding.ill else ("note", None)
        say(stream, f"{label}: {sentence(finding.words)}", style)
    for note in answer.notes:
        say(stream, f"note: {note}")
    if found.suggestions:
        stream.print()
    for attempt, fix in zip(found.suggestions, answer.fixes, strict=True):
        _print_suggestion(attempt, fix, stream)
    if not found.healthy and not found.suggestions:
        say(stream, "none of the changes that were tried helps")
    for attempt in found.attempts:
        if attempt.after is None:
            say(stream, f"not possible here: {attempt.name}: {attempt.refusal}")
        elif attempt not in found.suggestions:
            say(stream, f"does not cure it: {attempt.name}; {_lower(judged_by(attempt.after))}")
    stream.print()
    say(stream, f"written: {', '.join(map(str, answer.written))}")


def _print_suggestion(attempt: "Attempt", fix: "Fix", stream: "Console") -> None:
    from kernelprop.report.sections import judged_by

    say(stream, f"{'cures it' if attempt.cures else 'helps'}: {attempt.name}", "bold")
    say(stream, f"  {'; '.join(attempt.changes)}")
    if attempt.after is not None:
        say(stream, f"  {judged_by(attempt.after)}")
    for line in _changes(attempt):
        say(stream, f"  {line}")
    if fix.file is not None:
        say(stream, f"  as a description: {fix.file}, its arrays in {fix.files[1]}")


def _lower(words: str) -> str:
    return f"{words[0].lower()}{words[1:]}"


def _changes(attempt: "Attempt") -> list[str]:
    from kernelprop.report.tables import changed_numbers

    assert attempt.after is not None
    return [f"{name}: {old} -> {new}" for name, old, new in changed_numbers(attempt.before, attempt.after)]
