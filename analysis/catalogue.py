"""All studies by name. A new study is a new file, and a line here."""

from importlib import import_module
from typing import Any

NAMES = (
    "he2023_figure1",
    "rank_collapse",
    "mismatch",
    "token_mismatch",
    "attention_matrices",
    "activation_maps",
    "noci2022_correlation",
    "noci2022_gradients",
    "temperature",
    "gradient_profile",
    "real_encoder",
    "sweeps",
    "phase_map",
    "trainability",
)


def kind_of(name: str) -> Any:
    """The class of a study, loaded when it is asked for.

    Raises:
        ValueError: for an unknown name, with the known ones.
    """
    if name not in NAMES:
        raise ValueError(f"{name}: no such study; the studies are {', '.join(NAMES)}")
    return import_module(f"analysis.{name}").Spec
