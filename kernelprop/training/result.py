"""What a training run gives back."""

import json
import os
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kernelprop import storage
from kernelprop.files import write_whole
from kernelprop.results import Estimate
from kernelprop.tables import strict


@dataclass(frozen=True, eq=False, kw_only=True)
class TrainingRun:
    """A training run: its losses at every step, and what was measured on the way. Losses are in nats.

    Attributes:
        loss: the training loss in front of every step, ``(steps,)``.
        done: how many steps had been made at each of the ``n`` measurements, ``(n,)``.
        validation: the validation loss there, an `Estimate` of shape ``(n,)``; ``.n`` batches, always the same. Errors
            are those of single sequences, which are drawn independently.
        final: the validation loss at the end, over more batches.
        token_cosine: the probe's mean cosine of two positions at depths ``0…L``, ``(n, L+1)``.
        kernels: the probe's mean kernel behind the last layer, ``(n, T, T)``.
        gradient_norms: squared Frobenius norms of the loss's gradients by kind of weight, ``(n, L)`` for what every
            layer has, ``(n,)`` for embedding, positions and readout.
        scales: what of the description is trained, by name: residual weights, Value-SkipInit's α and β, ``(n, L)``
            each; bias and rescale whole.
        levels: losses to compare with, by name.
        recipe: the optimiser and its schedule.
        data: what it was trained on, in a line.
        sizes: width, heads, head width, vocabulary, trained numbers, by name.
        seed: of weights and batches.
        dtype: of the numbers.
        seconds: time spent in steps and measurements.
        description: the network.
        notes: what a reader should know.
    """

    loss: np.ndarray
    done: np.ndarray
    validation: Estimate
    final: Estimate
    token_cosine: np.ndarray
    kernels: np.ndarray
    gradient_norms: dict[str, np.ndarray]
    scales: dict[str, np.ndarray]
    levels: dict[str, float]
    recipe: Any
    data: str
    sizes: dict[str, int]
    seed: Any
    dtype: str
    seconds: float
    description: Any = None
    notes: tuple[str, ...] = field(default=())

    __hash__ = None  # pyright: ignore[reportAssignmentType]

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and storage.equal(self, other)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything to one ``.npz`` file, whole or not at all; ``load`` gives an equal object back."""
        storage.save(self, path)

    def table(self) -> list[dict[str, Any]]:
        """One row a measurement: steps done, losses, token cosine at the last depth, gradient norms of all layers."""
        rows = []
        for index, done in enumerate(self.done.tolist()):
            row = {
                "done": done,
                "validation_loss": float(self.validation.mean[index]),
                "validation_stderr": float(self.validation.stderr[index]),
                "token_cosine_first": float(self.token_cosine[index, 0]),
                "token_cosine_last": float(self.token_cosine[index, -1]),
            }
            norms = {f"gradient_{name}": float(np.sum(v[index])) for name, v in self.gradient_norms.items()}
            scales = {
                f"mean_{name}": float(np.mean(v[index])) for name, v in self.scales.items() if np.ndim(v[index]) == 1
            }
            rows.append(row | norms | scales)
        return rows

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write the table as CSV, numbers to full precision."""
        rows = self.table()
        lines = [",".join(rows[0]), *(",".join(repr(value) for value in row.values()) for row in rows)]
        write_whole(path, lambda stream: stream.write(("\n".join(lines) + "\n").encode()))

    def to_json(self, path: str | os.PathLike[str]) -> None:
        """Write losses, table and what the run was as strict JSON."""
        text = json.dumps(self.summary(), allow_nan=False, indent=1)
        write_whole(path, lambda stream: stream.write(text.encode()))

    def summary(self) -> dict[str, Any]:
        """Everything but arrays over layers, ready for strict JSON."""
        return {
            "format": "kernelprop training",
            "data": self.data,
            "sizes": dict(self.sizes),
            "recipe": {name: _plain(value) for name, value in vars(self.recipe).items()},
            "seed": _plain(self.seed),
            "dtype": self.dtype,
            "seconds": round(self.seconds, 1),
            "levels": dict(self.levels),
            "final": {"loss": strict(float(self.final.mean)), "stderr": strict(float(self.final.stderr))},
            "loss": strict(self.loss.tolist()),
            "rows": [{name: strict(value) for name, value in row.items()} for row in self.table()],
            "notes": list(self.notes),
        }


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return list(value)
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value
