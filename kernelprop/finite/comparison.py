"""Prediction beside measurement: what the infinite-width engines say, and what sampled networks do."""

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import numpy as np

from kernelprop import door, storage
from kernelprop.architecture import Transformer
from kernelprop.attention.random_softmax import RandomSoftmax
from kernelprop.finite import keys
from kernelprop.finite.ensemble import Ensemble
from kernelprop.finite.measures import SCALARS
from kernelprop.finite.network import network
from kernelprop.finite.scheme import MATRICES
from kernelprop.finite.simulation import simulate
from kernelprop.finite.width_law import WidthLaw, fit_width_law
from kernelprop.gradients import gradient_norms
from kernelprop.infinite import propagate
from kernelprop.results import Estimate

OBSERVABLES = ("kernels", "diagonal", *SCALARS)


@dataclass(frozen=True, eq=False, kw_only=True)
class Comparison:
    """Predictions, and measurements at several widths, by name.

    The names are ``kernels (n, T, T)``, ``diagonal (L+1, T)``, ``mean_correlation``, ``rank_residual`` and
    ``participation_ratio`` ``(L+1,)``, and, with gradients, the weights' ``(L,)``, divided by ``d²``: the width-free
    form. Measurements have a leading axis over widths.

    Attributes:
        widths: rising, ``(w,)``.
        depth: the depths whose kernels are compared, ``(n,)``.
        predicted: by name.
        predicted_stderr: by name; 0 where the prediction is no Monte-Carlo mean.
        measured: the means over draws, by name, ``(w, …)``.
        measured_stderr: their standard errors, rounding of the dtype included.
        draws: the number of draws at each width, ``(w,)``.
        dtype: of the sampled networks; predictions are float64.
        query_exact: where the predicted query row is exact, ``(L,)``; None without gradients.
        description: the network.
        notes: what a reader should know.
    """

    widths: np.ndarray
    depth: np.ndarray
    predicted: dict[str, np.ndarray]
    predicted_stderr: dict[str, np.ndarray]
    measured: dict[str, np.ndarray]
    measured_stderr: dict[str, np.ndarray]
    draws: np.ndarray
    dtype: str = "float32"
    query_exact: np.ndarray | None = None
    description: Any = None
    notes: tuple[str, ...] = ()

    __hash__ = None  # pyright: ignore[reportAssignmentType]

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and storage.equal(self, other)

    def difference(self, name: str) -> np.ndarray:
        """Measured minus predicted, ``(w, …)``."""
        return self.measured[name] - self.predicted[name]

    def stderr(self, name: str) -> np.ndarray:
        """The standard error of the difference, ``(w, …)``."""
        return np.sqrt(self.measured_stderr[name] ** 2 + self.predicted_stderr[name] ** 2)

    def z(self, name: str) -> np.ndarray:
        """The difference in units of its standard error, ``(w, …)``."""
        return self.difference(name) / self.stderr(name)

    def width_law(self, name: str) -> WidthLaw:
        """The difference as ``limit + slope/d``, fitted over the widths.

        Raises:
            ValueError: for a single width.
        """
        if len(self.widths) < 2:
            raise ValueError("width law: two widths or more are wanted")
        law = fit_width_law(
            self.widths.astype(np.float64), self.difference(name), self.measured_stderr[name], int(self.draws.sum())
        )
        # The prediction's own error is common to all widths: it moves the limit alone.
        stderr = np.sqrt(law.limit.stderr**2 + self.predicted_stderr[name] ** 2)
        return law._replace(limit=Estimate(law.limit.mean, stderr, law.limit.n))

    def table(self) -> list[dict[str, Any]]:
        """One row for each name and depth (layer, for gradients; of a kernel the entry furthest off).

        Columns: ``name``, ``depth`` or ``layer``, ``predicted``, and at the largest width ``measured``,
        ``difference``, ``stderr``, ``z``; with several widths ``limit``, ``limit_stderr`` and ``slope`` of their law,
        and with three or more its ``misfit``, ``χ²`` per degree of freedom.
        """
        return [self._row(name, place) for name in self.predicted for place in range(len(self.predicted[name]))]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything to one ``.npz`` file, whole or not at all; ``load`` gives an equal object back."""
        storage.save(self, path)

    def place(self, name: str, index: Sequence[int]) -> str:
        """Where an entry stands, in words: ``kernels[0, 3] at depth 12``, ``value in layer 2``."""
        where = f"in layer {index[0] + 1}" if name in MATRICES else f"at depth {self._depth(name, index[0])}"
        return f"{_label(name, index[1:])} {where}"

    def _row(self, name: str, place: int) -> dict[str, Any]:
        index = self._furthest(name, place)
        row: dict[str, Any] = {"name": _label(name, index[1:])}
        row |= {"layer": place + 1} if name in MATRICES else {"depth": self._depth(name, place)}
        row["predicted"] = float(self.predicted[name][index])
        row["measured"] = float(self.measured[name][-1][index])
        for column in ("difference", "stderr", "z"):
            row[column] = float(getattr(self, column)(name)[-1][index])
        if len(self.widths) > 1:
            law = self.width_law(name)
            row |= {"limit": float(law.limit.mean[index]), "limit_stderr": float(law.limit.stderr[index])}
            row["slope"] = float(law.slope.mean[index])
            # Two widths fit any law.
            row |= {"misfit": float(law.misfit[index])} if len(self.widths) > 2 else {}
        return row

    def _furthest(self, name: str, place: int) -> tuple[int, ...]:
        z = np.abs(self.z(name)[-1][place])
        return (place, *(int(k) for k in np.unravel_index(np.argmax(np.nan_to_num(z)), np.shape(z))))

    def _depth(self, name: str, place: int) -> int:
        return int(self.depth[place]) if name == "kernels" else place


def _label(name: str, inner: Sequence[int]) -> str:
    return f"{name}[{', '.join(map(str, inner))}]" if len(inner) else name


def compare(
    model: Transformer,
    kernel0: Any,
    *,
    widths: Sequence[int] = (128, 256, 512),
    draws: int = 64,
    key: Any = 0,
    gradients: bool = False,
    cotangent: Any = None,
    keep: Any = "last",
    dtype: Any = "float32",
    progress: Callable[[int, int, float], None] | None = None,
    **options: Any,
) -> Comparison:
    """Set the infinite-width prediction beside sampled networks of several widths.

    The remainder at each width comes with its standard error; over the widths it is fitted by ``limit + slope/d``.
    A finite-width effect falls as ``1/d`` and leaves no limit; an error in a formula leaves one.

    Args:
        model: the network.
        kernel0: the input kernel, ``(T, T)``.
        widths: the widths, each at least ``T``.
        draws: the number of draws at each width.
        key: a seed, or a JAX key; every width has draws of its own.
        gradients: whether the gradient norms are compared too.
        cotangent: ``G_L``, the kernel of the loss's gradient; None is the identity.
        keep: the depths whose kernels are compared.
        dtype: of the sampled networks.
        progress: called as ``progress(done, total, seconds)`` over the draws of all widths.
        **options: for `simulate`: ``heads``, ``head_width``, ``weights``, ``precision``.

    Returns:
        a `Comparison`. Interrupted (Ctrl-C), it holds the widths that have two draws or more, and says so in its notes.

    Raises:
        ValueError: as `simulate` and `propagate` do.

    >>> import kernelprop as kp
    >>> found = compare(kp.Transformer(kp.uniform(4)), kp.kernels.identity(4), widths=(8, 16), draws=8)
    >>> found.difference("mean_correlation").shape
    (2, 2)
    """
    sizes = np.unique([door.count(width, "widths") for width in widths])
    root = keys.root_key(key)
    started = time.monotonic()
    # What is wrong with the network is said at once, then what is wrong with its kernel.
    described = {name: options[name] for name in ("heads", "head_width", "weights") if name in options}
    for width in sizes.tolist():
        network(model, width, gradients=gradients, **described)
    predicted = _predictions(model, kernel0, keep, cotangent if gradients else None, gradients)
    ensembles: list[Ensemble] = []
    for index, width in enumerate(sizes.tolist()):
        try:
            found = simulate(
                model,
                kernel0,
                width=width,
                draws=draws,
                key=jax.random.fold_in(root, index),
                gradients=gradients,
                cotangent=cotangent,
                keep=keep,
                dtype=dtype,
                progress=_within(progress, index, len(sizes), started),
                **options,
            )
        except KeyboardInterrupt:
            if not ensembles:
                raise
            break
        ensembles.append(found)
        if found.draws < draws:  # Interrupted: the wider ones would take longest.
            break
    left_out = ", ".join(str(width) for width in sizes[len(ensembles) :])
    notes = (f"interrupted: no draws at width {left_out}",) if left_out else ()
    return _side_by_side(ensembles, predicted._replace(notes=predicted.notes + notes))


def _within(progress: Callable[[int, int, float], None] | None, index: int, count: int, started: float) -> Any:
    """Report one width's draws as part of all."""
    if progress is None:
        return None

    def report(done: int, total: int, seconds: float) -> None:
        progress(index * total + done, count * total, time.monotonic() - started)

    return report


class _Predicted(NamedTuple):
    """Values and standard errors by name, where the query row is exact, and notes."""

    values: dict[str, np.ndarray]
    errors: dict[str, np.ndarray]
    query_exact: np.ndarray | None
    notes: tuple[str, ...]


def _predictions(model: Transformer, kernel0: Any, keep: Any, cotangent: Any, gradients: bool) -> _Predicted:
    evolution = propagate(model, kernel0, keep=keep)
    predicted = {name: getattr(evolution, name) for name in OBSERVABLES}
    errors = {name: getattr(evolution, f"{name}_stderr") for name in OBSERVABLES}
    notes, exact = evolution.notes, None
    if gradients:
        norms = gradient_norms(model, kernel0, cotangent)
        predicted |= {name: getattr(norms, name) for name in MATRICES}
        errors |= norms.stderr or {}
        notes, exact = tuple(dict.fromkeys(notes + norms.notes)), norms.query_exact
    predicted = {name: value for name, value in predicted.items() if value is not None}
    known = {name: errors.get(name) for name in predicted}
    none = {name: np.zeros_like(predicted[name]) if error is None else error for name, error in known.items()}
    return _Predicted(predicted, none, exact, notes)


def _side_by_side(ensembles: list[Ensemble], predicted: _Predicted) -> Comparison:
    names = [name for name in predicted.values if all(getattr(one, name) is not None for one in ensembles)]
    measured = {name: np.stack([getattr(one, name).mean / _power(name, one) for one in ensembles]) for name in names}
    stderr = {
        name: np.stack([_stderr(getattr(one, name), one) / _power(name, one) for one in ensembles]) for name in names
    }
    own = tuple(f"width {one.width}: {note}" for one in ensembles for note in one.notes)
    own += _of_heads(ensembles[0])
    return Comparison(
        widths=np.array([one.width for one in ensembles]),
        depth=ensembles[0].depth,
        predicted={name: predicted.values[name] for name in names},
        predicted_stderr={name: predicted.errors[name] for name in names},
        measured=measured,
        measured_stderr=stderr,
        draws=np.array([one.draws for one in ensembles]),
        dtype=ensembles[0].dtype,
        query_exact=predicted.query_exact,
        description=ensembles[0].description,
        notes=predicted.notes + own,
    )


def _of_heads(ensemble: Ensemble) -> tuple[str, ...]:
    attention = ensemble.description.attention
    if not isinstance(attention, RandomSoftmax) or attention.heads is not None:
        return ()
    heads = f"{ensemble.heads} head" + "s" * (ensemble.heads > 1)
    return (f"predicted for infinitely many heads, sampled with {heads}: some of the difference falls as 1/heads",)


def _power(name: str, ensemble: Ensemble) -> float:
    return float(ensemble.width) ** 2 if name in MATRICES else 1.0


def _stderr(estimate: Estimate, ensemble: Ensemble) -> np.ndarray:
    """The standard error with rounding: draws that agree exactly would make every difference infinite."""
    rounding = 16 * np.finfo(ensemble.dtype).eps * np.nanmax(np.abs(estimate.mean), initial=0.0)
    # Where everything is exactly 0 the smallest number whose square is one keeps 0 a multiple of the error.
    return np.sqrt(estimate.stderr**2 + max(rounding, 1e-150) ** 2)
