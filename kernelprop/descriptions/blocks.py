"""The tables of what surrounds attention: ``[mlp]``, ``[residual]``, ``[norm]``, ``[gains]``, ``[positions]``."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from kernelprop import kernels
from kernelprop.descriptions.activations import Unsolved, read_activation
from kernelprop.descriptions.attention import one_array
from kernelprop.descriptions.entries import (
    Kind,
    Place,
    Reader,
    array,
    flag,
    number,
    numbers,
    one_of,
    read,
    read_kind,
    shown,
    text,
    whole,
)
from kernelprop.layers import residual
from kernelprop.layers.gains import Gains
from kernelprop.layers.gated_mlp import GatedMLP
from kernelprop.layers.mlp import MLP
from kernelprop.layers.norm import Norm
from kernelprop.layers.residual import Residual


def read_mlp(table: Any, place: Place) -> tuple[Any, Unsolved | None]:
    """Read an `MLP`, or with ``gated = true`` a `GatedMLP`; and what its activation must still be shaped for."""
    gated = isinstance(table, Mapping) and table.get("gated") is True
    own: dict[str, Reader] = {"gain_gate": numbers} if gated else {"bias_in": numbers, "bias_out": numbers}
    common: dict[str, Reader] = {"expansion": number, "gain_in": numbers, "gain_out": numbers}
    entries = {"activation": read_activation, "gated": flag, **common, **own}
    found = read(table, entries, place, ("activation",))
    found.pop("gated", None)
    unsolved = found["activation"] if isinstance(found["activation"], Unsolved) else None
    if unsolved is not None:
        found["activation"] = unsolved.base
    with place.blame(found):
        return (GatedMLP if gated else MLP)(**found), unsolved


def read_residual(table: Any, place: Place, depth: int) -> Residual | None:
    """Read weights, ``attention = [α, β]`` and ``mlp = [α, β]``, or a ``choice`` by name."""
    if isinstance(table, Mapping) and "choice" in table:
        name = one_of(CHOICES)(table["choice"], place.at("choice"))
        choice = CHOICES[name]
        found = read(table, {"choice": text, **choice.entries}, place, choice.required)
        found.pop("choice")
        with place.blame(found):
            return choice.make(depth, **found)
    found = read(table, {"attention": _weights, "mlp": _weights}, place)
    with place.blame(found):
        return Residual(**found)


CHOICES = {
    "none": Kind(lambda depth: None, {}),
    "plain": Kind(lambda depth: residual.plain(), {}),
    "normalised": Kind(lambda depth, beta: residual.normalised(beta), {"beta": numbers}, ("beta",)),
    "depth_scaled": Kind(residual.depth_scaled, {"attention": number, "mlp": number}),
}


def _weights(value: Any, place: Place) -> tuple[np.ndarray, np.ndarray]:
    if not isinstance(value, list) or len(value) != 2:
        raise place.error(f"a pair [alpha, beta] is wanted, {shown(value)} was given")
    alpha, beta = (numbers(item, place) for item in value)
    return alpha, beta


def read_norm(table: Any, place: Place) -> Norm:
    """Read a norm, or its place alone: ``norm = "pre"``."""
    if isinstance(table, str):
        with place.blame():
            return Norm(table)
    entries: dict[str, Reader] = {"place": text, "kind": text, "epsilon": number, "final": flag}
    found = read(table, entries, place, ("place",))
    with place.blame(found):
        return Norm(**found)


def read_gains(table: Any, place: Place) -> Gains:
    """Read the gains of the attention's weights."""
    names = ("query", "key", "value", "output", "temperature")
    found = read(table, dict.fromkeys(names, numbers), place)
    with place.blame(found):
        return Gains(**found)


def read_positions(table: Any, place: Place, length: int) -> np.ndarray:
    """Read the kernel that positional embeddings add."""
    made = read_kind(table, POSITIONS, place)
    with place.blame(table):
        return made(length)


POSITIONS = {
    "learned": Kind(
        lambda **numbers: lambda length: kernels.positional_learned(length, **numbers), {"variance": number}
    ),
    "sinusoidal": Kind(
        lambda **numbers: lambda length: kernels.positional_sinusoidal(length, **numbers),
        {"width": whole, "amplitude": number, "base": number},
        ("width",),
    ),
    "given": Kind(
        lambda file=None, matrix=None: lambda length: one_array(file, matrix), {"file": array, "matrix": array}
    ),
}
