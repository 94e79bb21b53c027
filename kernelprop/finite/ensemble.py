"""What many draws of a finite network gave: every number with its standard error."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelprop import storage
from kernelprop.finite.measures import SCALARS
from kernelprop.finite.scheme import MATRICES
from kernelprop.results import Estimate


@dataclass(frozen=True, eq=False, kw_only=True)
class Ensemble:
    """Kernels, observables and gradient norms of networks of one width, over independent draws.

    ``L`` layers, depths ``0…L``, ``T`` positions. All numbers are float64 means over draws, whatever the draws were
    computed in. An observable is measured in each draw and then averaged: for one that isn't linear in the kernel
    that differs from the observable of the mean kernel by ``O(L/d)``.

    Attributes:
        depth: the depths whose kernels are kept, ``(n,)``, int.
        kernels: ``X Xᵀ/d`` at those depths, ``(n, T, T)``.
        diagonal: ``S_ii`` at every depth, ``(L+1, T)``.
        mean_correlation, rank_residual, participation_ratio: at every depth, ``(L+1,)``.
        query, key, value, output, mlp_in, mlp_gate, mlp_out: squared Frobenius norms of the gradients, ``(L,)``, raw
            at this width; None without gradients and for weights that the network lacks.
        undefined: whether some token had zero norm or a number overflowed in some draw, bool ``(L+1,)``.
        below_floor: whether the rank residual is below what rounding can tell, bool ``(L+1,)``.
        width, heads, head_width: ``d``, ``H``, ``d_k``.
        draws: the number of draws.
        dtype, precision: what the draws were computed in.
        samples: single draws' numbers by name, ``(draws, …)``, where they were asked for; else None.
        description: the network.
        notes: what a reader should know.
    """

    depth: np.ndarray
    kernels: Estimate
    diagonal: Estimate
    mean_correlation: Estimate
    rank_residual: Estimate
    participation_ratio: Estimate
    undefined: np.ndarray
    below_floor: np.ndarray
    width: int
    heads: int
    head_width: int
    draws: int
    dtype: str
    precision: str
    query: Estimate | None = None
    key: Estimate | None = None
    value: Estimate | None = None
    output: Estimate | None = None
    mlp_in: Estimate | None = None
    mlp_gate: Estimate | None = None
    mlp_out: Estimate | None = None
    samples: dict[str, np.ndarray] | None = None
    description: Any = None
    notes: tuple[str, ...] = ()

    __hash__ = None  # pyright: ignore[reportAssignmentType]

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and storage.equal(self, other)

    @property
    def layers(self) -> int:
        """The number of layers ``L``."""
        return len(self.mean_correlation.mean) - 1

    @property
    def length(self) -> int:
        """The number of positions ``T``."""
        return self.diagonal.mean.shape[-1]

    @property
    def gradients(self) -> dict[str, Estimate]:
        """The gradient norms that were measured, by weight."""
        norms = {name: getattr(self, name) for name in MATRICES}
        return {name: norm for name, norm in norms.items() if norm is not None}

    def kernel(self, depth: int) -> Estimate:
        """The kernel at one of the kept depths, ``(T, T)``; a negative depth counts from the last.

        Raises:
            ValueError: for a depth whose kernel was not kept.
        """
        wanted = depth + self.layers + 1 if depth < 0 else depth
        where = np.flatnonzero(self.depth == wanted)
        if not len(where):
            raise ValueError(f"depth {depth}: its kernel was not kept; kept depths: {', '.join(map(str, self.depth))}")
        index = int(where[0])
        return Estimate(self.kernels.mean[index], self.kernels.stderr[index], self.kernels.n)

    def spread(self, name: str) -> np.ndarray:
        """The standard deviation between single networks of one of the numbers, of its shape.

        Under Gaussian weights that of a kernel's entries grows like ``√(L/d)``; an attention-only stack of
        orthogonal weights has none.
        """
        estimate = self._estimate(name)
        return estimate.stderr * np.sqrt(estimate.n)

    def quantiles(self, name: str, levels: Sequence[float] = (0.05, 0.5, 0.95)) -> np.ndarray:
        """Quantiles over single networks, ``(levels, …)``.

        Raises:
            ValueError: where single draws were not kept (``simulate(…, samples=True)`` keeps those of scalars).
        """
        if self.samples is None or name not in self.samples:
            known = "none" if self.samples is None else ", ".join(self.samples)
            raise ValueError(f"{name}: single draws were not kept; simulate with samples=True. Kept: {known}")
        return np.quantile(self.samples[name], levels, axis=0)

    def table(self) -> list[dict[str, float | int]]:
        """One row a depth: the scalar observables, each beside its standard error."""
        rows = []
        for depth in range(self.layers + 1):
            row: dict[str, float | int] = {"depth": depth}
            for name in SCALARS:
                row |= _pair(name, getattr(self, name), depth)
            rows.append(row)
        return rows

    def gradient_table(self) -> list[dict[str, float | int]]:
        """One row a layer, from 1: the gradient norms that were measured, each beside its standard error."""
        rows = []
        for layer in range(self.layers):
            row: dict[str, float | int] = {"layer": layer + 1}
            for name, norm in self.gradients.items():
                row |= _pair(name, norm, layer)
            rows.append(row)
        return rows

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything to one ``.npz`` file, whole or not at all; ``load`` gives an equal object back."""
        storage.save(self, path)

    def _estimate(self, name: str) -> Estimate:
        found = getattr(self, name, None)
        if not isinstance(found, Estimate):
            raise ValueError(f"{name!r} was not measured")
        return found


def _pair(name: str, estimate: Estimate, index: int) -> dict[str, float]:
    return {name: float(estimate.mean[index]), f"{name}_stderr": float(estimate.stderr[index])}
