"""Records of runs: found, read, written."""

from pathlib import Path
from typing import Any

import numpy as np

from analysis.records import Record, read_record, write_record
from analysis.training.studies import Run
from kernelprop.training.result import TrainingRun

RECORDS = Path(__file__).parent / "records"
CHECKPOINTS = Path(__file__).parent / "checkpoints"


def has(run: Run, folder: Path = RECORDS) -> bool:
    """Whether the run has been made."""
    return (folder / f"{run.name}.json").is_file()


def read(run: Run, folder: Path = RECORDS) -> Record:
    """The record of a run.

    Raises:
        ValueError: where it is missing.
    """
    return read_record(run.name, folder)


def final_loss(run: Run, folder: Path = RECORDS) -> float:
    """The validation loss at the end; infinite where the loss was not finite."""
    final = read(run, folder).words["final"]
    return float("inf") if final is None else float(final["loss"])


def keep(run: Run, found: TrainingRun, seconds: float, folder: Path = RECORDS) -> None:
    """Write the record of a finished run: what the tables and pictures read, in single precision."""
    words = {
        "run": run._asdict(),
        "final": {"loss": float(found.final.mean), "stderr": float(found.final.stderr), "batches": found.final.n},
        "levels": found.levels,
        "sizes": found.sizes,
        "data": found.data,
        "notes": list(found.notes),
        "recipe": {key: list(v) if isinstance(v, tuple) else v for key, v in vars(found.recipe).items()},
    }
    arrays = {
        "loss": found.loss,
        "done": found.done,
        "validation": found.validation.mean,
        "validation_stderr": found.validation.stderr,
        "token_cosine": found.token_cosine,
        "kernels": found.kernels[[0, -1]],
    }
    arrays |= {f"gradient_{name}": values for name, values in found.gradient_norms.items()}
    # Numbers a layer; whole biases would be most of the record.
    arrays |= {f"scale_{name}": values for name, values in found.scales.items() if values.ndim == 2}
    write_record(run.name, words, {name: _single(array) for name, array in arrays.items()}, seconds, folder)


def keep_failure(run: Run, reason: str, step: int, seconds: float, folder: Path = RECORDS) -> None:
    """Write the record of a run whose loss was not finite."""
    words: dict[str, Any] = {"run": run._asdict(), "final": None, "diverged": {"step": step, "reason": reason}}
    write_record(run.name, words, {}, seconds, folder)


def _single(array: np.ndarray) -> np.ndarray:
    return array.astype(np.float32) if array.dtype.kind == "f" else array
