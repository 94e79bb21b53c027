"""Signal propagation in transformers at initialisation: kernels forward, gradient norms backward.

Names load when they are first used, so that importing the package costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kernelprop import cotangents, examples, kernels, observables, plotting, predictions
    from kernelprop.activations import Activation, LeakyReLU, activation, dks, dual, dual_derivative, tat
    from kernelprop.architecture import Transformer
    from kernelprop.attention.block_diagonal import block_diagonal
    from kernelprop.attention.dense import dense
    from kernelprop.attention.espa import espa
    from kernelprop.attention.identity import identity
    from kernelprop.attention.mixture import mix
    from kernelprop.attention.prescribed import signal_preserving
    from kernelprop.attention.schedules import espa_schedule, uspa_schedule
    from kernelprop.attention.uniform import uniform
    from kernelprop.attention.uspa import uspa
    from kernelprop.balance import balance_temperature, dead_queries, residual_scale
    from kernelprop.fitting import Mismatch, SignalFit, fit_espa, fit_uspa, mismatch
    from kernelprop.gradients import gradient_norms
    from kernelprop.infinite import propagate
    from kernelprop.layers.gains import Gains
    from kernelprop.layers.gated_mlp import GatedMLP
    from kernelprop.layers.mlp import MLP
    from kernelprop.layers.norm import Norm
    from kernelprop.layers.residual import Residual
    from kernelprop.results import Estimate, Evolution, GradientNorms, load

__version__ = "0.1.0"

_HOMES = {
    "Activation": "activations",
    "Estimate": "results",
    "Evolution": "results",
    "Gains": "layers.gains",
    "GatedMLP": "layers.gated_mlp",
    "GradientNorms": "results",
    "LeakyReLU": "activations",
    "MLP": "layers.mlp",
    "Mismatch": "fitting",
    "Norm": "layers.norm",
    "Residual": "layers.residual",
    "SignalFit": "fitting",
    "Transformer": "architecture",
    "activation": "activations",
    "balance_temperature": "balance",
    "block_diagonal": "attention.block_diagonal",
    "dead_queries": "balance",
    "dense": "attention.dense",
    "dks": "activations",
    "dual": "activations",
    "dual_derivative": "activations",
    "espa": "attention.espa",
    "espa_schedule": "attention.schedules",
    "fit_espa": "fitting",
    "fit_uspa": "fitting",
    "gradient_norms": "gradients",
    "identity": "attention.identity",
    "load": "results",
    "mismatch": "fitting",
    "mix": "attention.mixture",
    "propagate": "infinite",
    "residual_scale": "balance",
    "signal_preserving": "attention.prescribed",
    "tat": "activations",
    "uniform": "attention.uniform",
    "uspa": "attention.uspa",
    "uspa_schedule": "attention.schedules",
}
_ROOMS = ("cotangents", "examples", "kernels", "observables", "plotting", "predictions")

__all__ = [  # noqa: RUF022 - the rooms stand after the names
    "Activation",
    "Estimate",
    "Evolution",
    "Gains",
    "GatedMLP",
    "GradientNorms",
    "LeakyReLU",
    "MLP",
    "Mismatch",
    "Norm",
    "Residual",
    "SignalFit",
    "Transformer",
    "activation",
    "balance_temperature",
    "block_diagonal",
    "dead_queries",
    "dense",
    "dks",
    "dual",
    "dual_derivative",
    "espa",
    "espa_schedule",
    "fit_espa",
    "fit_uspa",
    "gradient_norms",
    "identity",
    "load",
    "mismatch",
    "mix",
    "propagate",
    "residual_scale",
    "signal_preserving",
    "tat",
    "uniform",
    "uspa",
    "uspa_schedule",
    "cotangents",
    "examples",
    "kernels",
    "observables",
    "plotting",
    "predictions",
]


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return import_module(f"kernelprop.{name}")
    if name in _HOMES:
        return getattr(import_module(f"kernelprop.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'kernelprop' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
