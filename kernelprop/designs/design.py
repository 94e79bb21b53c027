"""``Design``: a network, what it prescribes and what it does, to be read, printed and saved."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from kernelprop.architecture import Transformer
from kernelprop.designs.saving import save_design
from kernelprop.fitting import SignalFit
from kernelprop.observables import mean_correlation, rank_residual
from kernelprop.results import Evolution


@dataclass(frozen=True, eq=False, kw_only=True)
class Design:
    """A network at initialisation that is made to keep its kernel, and the proof.

    Attributes:
        model: the network.
        kernel0: the input kernel, scaled to a mean diagonal of 1, ``(T, T)``.
        parameter: ``"gamma"`` (E-SPA) or ``"rho"`` (U-SPA).
        schedule: ``γ_0 … γ_L`` or ``ρ_0 … ρ_L``, ``(L+1,)``.
        prescribed: the kernels that the schedule prescribes at depths 0 and ``L``, ``(2, T, T)``.
        attention_alone: the kernel through the attention without MLPs, norms and residuals.
        network: the kernel through the whole network.
        fit: how the schedule's start was fitted to the input; None for uncorrelated positions.
    """

    model: Transformer
    kernel0: np.ndarray
    parameter: str
    schedule: np.ndarray
    prescribed: np.ndarray
    attention_alone: Evolution
    network: Evolution
    fit: SignalFit | None

    @property
    def input_scale(self) -> float:
        """What the input kernel was multiplied by: inputs are to be multiplied by its root."""
        return 1.0 if self.fit is None else self.fit.scale

    def distance(self, evolution: Evolution) -> float:
        """``‖Σ_L − K_L‖_F / ‖K_L‖_F`` of a last kernel from the prescribed one."""
        wanted = self.prescribed[-1]
        return float(np.linalg.norm(evolution.kernel(-1) - wanted) / np.linalg.norm(wanted))

    def table(self) -> list[dict[str, Any]]:
        """First and last kernel, prescribed and reached: mean correlation, diagonal, distance from the prescribed."""
        first = _row("input", self.kernel0, self.prescribed[0])
        kernels = {
            "prescribed end": self.prescribed[-1],
            "attention alone": self.attention_alone.kernel(-1),
            "whole network": self.network.kernel(-1),
        }
        return [first, *(_row(name, kernel, self.prescribed[-1]) for name, kernel in kernels.items())]

    def save(self, path: str | os.PathLike[str], dtype: str = "float32") -> list[Path]:
        """Write ``path.safetensors`` and ``path.toml``; see `save_design`."""
        return save_design(self, path, dtype)


def _row(name: str, kernel: np.ndarray, prescribed: np.ndarray) -> dict[str, Any]:
    diagonal = np.diagonal(kernel)
    return {
        "kernel": name,
        "mean_correlation": float(mean_correlation(kernel)),
        "rank_residual": float(rank_residual(kernel)),
        "diagonal_minimum": float(diagonal.min()),
        "diagonal_maximum": float(diagonal.max()),
        "distance": float(np.linalg.norm(kernel - prescribed) / np.linalg.norm(prescribed)),
    }
