"""Signal propagation in transformers at initialisation: kernels forward, gradient norms backward.

Names load when they are first used, so that importing the package costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kernelprop import cotangents, examples, kernels, observables, plotting, predictions, training
    from kernelprop.activations import Activation, LeakyReLU, activation, dks, dual, dual_derivative, tat
    from kernelprop.architecture import Transformer
    from kernelprop.attention.biases import alibi_bias, alibi_slopes, softmax_attention, t5_bias, t5_buckets
    from kernelprop.attention.block_diagonal import block_diagonal
    from kernelprop.attention.dense import dense
    from kernelprop.attention.espa import espa
    from kernelprop.attention.identity import identity
    from kernelprop.attention.masking import masked
    from kernelprop.attention.mixture import mix, value_skip_init
    from kernelprop.attention.prescribed import signal_preserving
    from kernelprop.attention.random_softmax import RandomSoftmax, random_softmax, rotary_frequencies, shaped_attention
    from kernelprop.attention.schedules import espa_schedule, uspa_schedule
    from kernelprop.attention.sliding_window import sliding_window
    from kernelprop.attention.uniform import uniform
    from kernelprop.attention.uspa import uspa
    from kernelprop.balance import balance_temperature, dead_queries, queries_lost_to_rounding, residual_scale
    from kernelprop.descriptions.in_words import describe
    from kernelprop.descriptions.loading import Description, load_description
    from kernelprop.descriptions.writing import description_toml, save_description
    from kernelprop.designs.design import Design
    from kernelprop.designs.making import design
    from kernelprop.diagnosis.diagnose import Diagnosis, diagnose
    from kernelprop.finite.comparison import Comparison, compare
    from kernelprop.finite.ensemble import Ensemble
    from kernelprop.finite.simulation import simulate
    from kernelprop.fitting import Mismatch, SignalFit, fit_espa, fit_uspa, mismatch
    from kernelprop.gradients import gradient_norms
    from kernelprop.infinite import propagate
    from kernelprop.layers.gains import Gains
    from kernelprop.layers.gated_mlp import GatedMLP
    from kernelprop.layers.mlp import MLP
    from kernelprop.layers.norm import Norm
    from kernelprop.layers.residual import Residual
    from kernelprop.network_shaping import shape_activation
    from kernelprop.results import Estimate, Evolution, GradientNorms, load
    from kernelprop.row_sharded.propagation import propagate_sharded
    from kernelprop.training.loop import Diverged
    from kernelprop.training.recipe import Recipe, Watch
    from kernelprop.training.result import TrainingRun
    from kernelprop.training.run import train

__version__ = "0.1.0"

_HOMES = {
    "Activation": "activations",
    "Comparison": "finite.comparison",
    "Description": "descriptions.loading",
    "Design": "designs.design",
    "Diagnosis": "diagnosis.diagnose",
    "Diverged": "training.loop",
    "Ensemble": "finite.ensemble",
    "Estimate": "results",
    "Evolution": "results",
    "Gains": "layers.gains",
    "GatedMLP": "layers.gated_mlp",
    "GradientNorms": "results",
    "LeakyReLU": "activations",
    "MLP": "layers.mlp",
    "Mismatch": "fitting",
    "Norm": "layers.norm",
    "RandomSoftmax": "attention.random_softmax",
    "Recipe": "training.recipe",
    "Residual": "layers.residual",
    "SignalFit": "fitting",
    "TrainingRun": "training.result",
    "Transformer": "architecture",
    "Watch": "training.recipe",
    "activation": "activations",
    "alibi_bias": "attention.biases",
    "alibi_slopes": "attention.biases",
    "balance_temperature": "balance",
    "block_diagonal": "attention.block_diagonal",
    "compare": "finite.comparison",
    "dead_queries": "balance",
    "dense": "attention.dense",
    "describe": "descriptions.in_words",
    "description_toml": "descriptions.writing",
    "design": "designs.making",
    "diagnose": "diagnosis.diagnose",
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
    "load_description": "descriptions.loading",
    "masked": "attention.masking",
    "mismatch": "fitting",
    "mix": "attention.mixture",
    "propagate": "infinite",
    "propagate_sharded": "row_sharded.propagation",
    "queries_lost_to_rounding": "balance",
    "random_softmax": "attention.random_softmax",
    "residual_scale": "balance",
    "rotary_frequencies": "attention.random_softmax",
    "save_description": "descriptions.writing",
    "shape_activation": "network_shaping",
    "shaped_attention": "attention.random_softmax",
    "signal_preserving": "attention.prescribed",
    "simulate": "finite.simulation",
    "sliding_window": "attention.sliding_window",
    "softmax_attention": "attention.biases",
    "t5_bias": "attention.biases",
    "t5_buckets": "attention.biases",
    "tat": "activations",
    "train": "training.run",
    "uniform": "attention.uniform",
    "uspa": "attention.uspa",
    "uspa_schedule": "attention.schedules",
    "value_skip_init": "attention.mixture",
}
_ROOMS = ("cotangents", "examples", "kernels", "observables", "plotting", "predictions", "training")

__all__ = [  # noqa: RUF022 - the rooms stand after the names
    "Activation",
    "Comparison",
    "Description",
    "Design",
    "Diagnosis",
    "Diverged",
    "Ensemble",
    "Estimate",
    "Evolution",
    "Gains",
    "GatedMLP",
    "GradientNorms",
    "LeakyReLU",
    "MLP",
    "Mismatch",
    "Norm",
    "RandomSoftmax",
    "Recipe",
    "Residual",
    "SignalFit",
    "TrainingRun",
    "Transformer",
    "Watch",
    "activation",
    "alibi_bias",
    "alibi_slopes",
    "balance_temperature",
    "block_diagonal",
    "compare",
    "dead_queries",
    "dense",
    "describe",
    "description_toml",
    "design",
    "diagnose",
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
    "load_description",
    "masked",
    "mismatch",
    "mix",
    "propagate",
    "propagate_sharded",
    "queries_lost_to_rounding",
    "random_softmax",
    "residual_scale",
    "rotary_frequencies",
    "save_description",
    "shape_activation",
    "shaped_attention",
    "signal_preserving",
    "simulate",
    "sliding_window",
    "softmax_attention",
    "t5_bias",
    "t5_buckets",
    "tat",
    "train",
    "uniform",
    "uspa",
    "uspa_schedule",
    "value_skip_init",
    "cotangents",
    "examples",
    "kernels",
    "observables",
    "plotting",
    "predictions",
    "training",
]


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return import_module(f"kernelprop.{name}")
    if name in _HOMES:
        return getattr(import_module(f"kernelprop.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'kernelprop' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*__all__, "__doc__", "__name__", "__version__"})
