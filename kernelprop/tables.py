"""An evolution as rows for a terminal, as CSV and as strict JSON."""

import csv
import io
import json
import math
import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from kernelprop.files import write_whole
from kernelprop.observables import DEFINITIONS

if TYPE_CHECKING:
    from kernelprop.results import Evolution

SCALARS = (
    "mean_correlation",
    "rank_residual",
    "participation_ratio",
    "effective_rank",
    "stable_rank",
    "eigenvalue_gap",
)


def rows(evolution: "Evolution", depths: Sequence[int] | None = None) -> list[dict[str, Any]]:
    """Return one row for each of the depths (all of them by default) and each kernel of a batch.

    Columns: ``batch`` (only for a batch; ``"0"`` or ``"0,1"``), ``depth``, ``mean_correlation``, minimum and
    maximum of the diagonal, the ranks that were computed, standard errors if there are any, and the flags.

    Raises:
        ValueError: for a depth outside ``0…L``.
    """
    chosen = range(evolution.layers + 1) if depths is None else [_depth(evolution, depth) for depth in depths]
    batches = list(np.ndindex(*evolution.mean_correlation.shape[:-1]))
    return [_row(evolution, batch, depth) for batch in batches for depth in chosen]


def write_csv(evolution: "Evolution", path: str | os.PathLike[str]) -> None:
    """Write all rows as CSV, numbers to full precision, NaN as ``nan``."""
    table = rows(evolution)
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, table[0])
    writer.writeheader()
    writer.writerows(table)
    write_whole(path, lambda stream: stream.write(text.getvalue().encode()))


def write_json(evolution: "Evolution", path: str | os.PathLike[str]) -> None:
    """Write every observable at every depth as strict JSON.

    JSON has no NaN and no infinity: they become ``null`` and ``"inf"``. Kernels are not in it (``save`` keeps
    them). Each observable's definition is.
    """
    series = dict(_series(evolution))
    content = {
        "format": "kernelprop evolution",
        "layers": evolution.layers,
        "positions": evolution.length,
        "notes": list(evolution.notes),
        "definitions": {name: DEFINITIONS[name] for name in series if name in DEFINITIONS},
        "observables": {name: strict(array.tolist()) for name, array in series.items()},
    }
    text = json.dumps(content, allow_nan=False, indent=1)
    write_whole(path, lambda stream: stream.write(text.encode()))


def strict(value: Any) -> Any:
    """Replace what strict JSON lacks: NaN by None, infinities by ``"inf"`` and ``"-inf"``.

    >>> strict([1.0, float("nan"), float("inf")])
    [1.0, None, 'inf']
    """
    if isinstance(value, list):
        return [strict(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    return value


def _series(evolution: "Evolution") -> Iterator[tuple[str, np.ndarray]]:
    names = ("diagonal", *SCALARS, "eigenvalues", "attention_entropy")
    for name in (*names, *(f"{name}_stderr" for name in names), "undefined", "below_floor"):
        array = getattr(evolution, name, None)
        if array is not None:
            yield name, array
    if evolution.eigenvalue_gap is not None:
        yield "eigenvalue_ratio", 1 / evolution.eigenvalue_gap


def _row(evolution: "Evolution", batch: tuple[int, ...], depth: int) -> dict[str, Any]:
    row: dict[str, Any] = {"batch": ",".join(map(str, batch))} if batch else {}
    diagonal = evolution.diagonal[batch][depth]
    row["depth"] = depth
    for name in SCALARS:
        if name == "rank_residual":
            row |= {"diagonal_minimum": float(diagonal.min()), "diagonal_maximum": float(diagonal.max())}
        for column in (name, f"{name}_stderr"):
            array = getattr(evolution, column, None)
            if array is not None:
                row[column] = float(array[batch][depth])
    flags = ("undefined", "below_floor")
    return row | {name: bool(getattr(evolution, name)[batch][depth]) for name in flags}


def _depth(evolution: "Evolution", depth: int) -> int:
    layers = evolution.layers
    if not -layers - 1 <= depth <= layers:
        raise ValueError(f"depth {depth}: the network has depths 0 to {layers}")
    return depth % (layers + 1)
