"""One point after another, or several at once: each is kept as it finishes, and the whole becomes a record."""

import multiprocessing
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from analysis.records import FOLDER, files_of, write_record
from analysis.study import Study, is_recorded, record_name
from kernelprop.files import write_whole

Report = Callable[[int, int, str], None]
SECONDS = "seconds"


def run(
    study: Study, folder: Path = FOLDER, *, jobs: int = 1, again: bool = False, progress: Report | None = None
) -> list[Path]:
    """Answer a study and write its record; nothing is computed where there is one.

    Finished points wait in ``unfinished/`` beside the records, so that a run that was stopped goes on where it was.

    Args:
        study: the question.
        folder: of the records.
        jobs: processes that take points at the same time; the numbers don't depend on it.
        again: whether to compute what has been recorded before.
        progress: called as ``progress(done, total, point)`` after each point, and before the first with ``""``.

    Returns:
        The two files of the record.

    Raises:
        ValueError: as the study does, naming the point.
    """
    name = record_name(study)
    if is_recorded(study, folder) and not again:
        return files_of(name, folder)
    waiting = folder / "unfinished" / name
    if again:
        _clear(waiting)
    _open(waiting)
    points = study.points()
    missing = [point for point in points if not _file(waiting, points, point).is_file()]
    tell = progress or (lambda done, total, point: None)
    tell(len(points) - len(missing), len(points), "")
    for count, point in enumerate(_perform(study, missing, waiting, jobs), start=1):
        tell(len(points) - len(missing) + count, len(points), point)
    files = _gather(study, waiting, folder)
    _clear(waiting)
    return files


def _perform(study: Study, missing: Sequence[str], waiting: Path, jobs: int) -> Iterator[str]:
    if min(jobs, len(missing)) <= 1:
        for point in missing:
            yield _one(study, point, waiting)
        return
    # Spawned: JAX's threads don't survive a fork.
    with ProcessPoolExecutor(min(jobs, len(missing)), multiprocessing.get_context("spawn")) as pool:
        futures = [pool.submit(_one, study, point, waiting) for point in missing]
        try:
            for future in as_completed(futures):
                yield future.result()
        finally:
            for future in futures:
                future.cancel()


def _one(study: Study, point: str, waiting: Path) -> str:
    """Measure one point and keep it."""
    start = time.perf_counter()
    try:
        found = {name: np.asarray(value) for name, value in study.measure(point).items()}
    except ValueError as error:
        raise ValueError(f"{study.name}: point {point}: {error}") from error
    arrays: dict[str, Any] = {**found, SECONDS: np.asarray(time.perf_counter() - start)}
    write_whole(_file(waiting, study.points(), point), lambda stream: np.savez_compressed(stream, **arrays))
    return point


def _gather(study: Study, waiting: Path, folder: Path) -> list[Path]:
    arrays: dict[str, np.ndarray] = {}
    seconds = 0.0
    for point in study.points():
        with np.load(_file(waiting, study.points(), point), allow_pickle=False) as stored:
            seconds += float(stored[SECONDS])
            arrays |= {f"{point}:{name}": stored[name] for name in stored.files if name != SECONDS}
    words = {"question": study.question, "spec": asdict(study), "points": list(study.points())}
    return write_record(record_name(study), words, arrays, seconds, folder)


def _open(waiting: Path) -> None:
    waiting.mkdir(parents=True, exist_ok=True)
    # What is unfinished is nobody's to commit.
    (waiting.parent / ".gitignore").write_text("*\n", encoding="utf-8")


def _file(waiting: Path, points: Sequence[str], point: str) -> Path:
    return waiting / f"{points.index(point)}.npz"


def _clear(waiting: Path) -> None:
    for file in waiting.glob("*.npz"):
        file.unlink()
    if waiting.is_dir() and not any(waiting.iterdir()):
        waiting.rmdir()
