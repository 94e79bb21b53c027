"""The table ``[attention]``: every operator by its kind; a mask, a share of the identity and copies on top."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import equinox as eqx
import numpy as np

from kernelprop.attention import biases
from kernelprop.attention.block_diagonal import block_diagonal
from kernelprop.attention.dense import dense
from kernelprop.attention.espa import espa
from kernelprop.attention.identity import identity
from kernelprop.attention.masking import masked
from kernelprop.attention.mixture import Mixture, mix
from kernelprop.attention.random_softmax import random_softmax, rotary_frequencies, shaped_attention
from kernelprop.attention.sliding_window import sliding_window
from kernelprop.attention.uniform import uniform
from kernelprop.attention.uspa import uspa
from kernelprop.descriptions.entries import (
    Called,
    Kind,
    Place,
    Reader,
    array,
    finite,
    flag,
    number,
    numbers,
    one_of,
    read,
    read_kind,
    text,
    unknown,
    whole,
)


def read_attention(table: Any, place: Place, length: int | None) -> tuple[Any, int | None]:
    """Read the operator, and the network's depth where one is given.

    Args:
        table: the table.
        place: where it stands.
        length: the number of positions, where the table has none: that of the input kernel.

    Raises:
        ValueError: naming the entry that is unknown, missing or wrong.
    """
    if not isinstance(table, Mapping):
        raise place.error("a table is wanted, such as [attention]")
    depth = whole(table["depth"], place.at("depth")) if "depth" in table else None
    kind = one_of(KINDS)(table.get("kind"), place.at("kind"))
    wrappers = ("mix", "copies") if "mask" in KINDS[kind].entries else ("mask", "mix", "copies")
    known = {"kind", "depth", *KINDS[kind].entries, *wrappers}
    for key in table:
        if key not in known:
            raise place.at(key).error(unknown(key, known, "entries"))
    around = {key: table[key] for key in wrappers if key in table}
    inner = {key: value for key, value in table.items() if key not in around}
    known = length is not None and "copies" not in around and "length" in KINDS[kind].entries
    if known and "length" not in inner:
        inner["length"] = length
    elif "length" not in inner and "length" in KINDS[kind].required:
        raise place.at("length").error("is missing: the number of positions")
    if kind not in DEEP:
        inner.pop("depth", None)
    operator = read_kind(inner, KINDS, place)
    if "mask" in around:
        mask = array(around["mask"], place.at("mask"))
        with place.at("mask").blame():
            operator = masked(operator, mask)
    for one in _mixes(around.get("mix", [])):
        operator = _mixed(operator, one, place.at("mix"))
    if "copies" in around:
        copies = whole(around["copies"], place.at("copies"))
        with place.at("copies").blame():
            operator = block_diagonal(operator, copies)
    return operator, depth


def _mixes(entry: Any) -> list:
    return entry if isinstance(entry, list) else [entry]


def _mixed(operator: Any, table: Any, place: Place) -> Any:
    found = read(table, {"alpha": numbers, "beta": numbers, "value_skip": flag}, place, ("alpha", "beta"))
    value_skip = found.pop("value_skip", True)
    with place.blame(found):
        mixed = mix(operator, **found)
    if value_skip:
        return mixed
    if isinstance(mixed, Mixture):
        return replace(mixed, value_skip=False)
    return eqx.tree_at(lambda stack: stack.layers, mixed, replace(mixed.layers, value_skip=False))


def _dense(file: Any = None, matrix: Any = None) -> Any:
    return dense(one_array(file, matrix))


def one_array(file: Any, matrix: Any) -> np.ndarray:
    """The array that was given, as a file or written out.

    Raises:
        ValueError: unless it is exactly one of the two.
    """
    if (file is None) == (matrix is None):
        raise ValueError("give file or matrix, one of the two")
    return matrix if file is None else file


def _random(length: int, bias: Any = None, **options: Any) -> Any:
    return random_softmax(length, bias=_bias(length, bias, options.get("causal", False)), **options)


def _shaped(length: int, bias: Any = None, **options: Any) -> Any:
    return shaped_attention(length, bias=_bias(length, bias, options.get("causal", False)), **options)


def _softmax(length: int, bias: Any = None, causal: bool = False, **options: Any) -> Any:
    found = _bias(length, bias, causal)
    return biases.softmax_attention(np.zeros((length, length)) if found is None else found, causal=causal, **options)


def _bias(length: int, bias: Any, causal: bool) -> Any:
    """A bias that is given, or made once the length is known."""
    return bias(length, causal) if callable(bias) else bias


def _read_bias(value: Any, place: Place) -> Any:
    if not isinstance(value, Mapping):
        return array(value, place)
    make, options = read_kind(value, _BIASES, place)

    def of_length(length: int, causal: bool) -> np.ndarray:
        return make(length, causal, **options)

    return of_length


def _alibi(**options: Any) -> Any:
    return (lambda length, causal, **given: biases.alibi_bias(length, **given)), options


def _t5(table: Any, **options: Any) -> Any:
    def make(length: int, causal: bool, **given: Any) -> np.ndarray:
        return biases.t5_bias(length, table, causal, **given)

    return make, options


_BIASES = {
    "alibi": Kind(_alibi, {"heads": whole, "slopes": numbers}),
    "t5": Kind(_t5, {"table": array, "max_distance": whole}, ("table",)),
}


def _read_rotary(value: Any, place: Place) -> Any:
    if not isinstance(value, Mapping):
        return numbers(value, place)
    found = read(value, {"head_width": whole, "base": number}, place, ("head_width",))
    with place.blame(found):
        return rotary_frequencies(**found)


def _ends(name: str) -> Called:
    """A schedule that is given by its ends alone is checked at depths 0 and 1."""
    return {"depth 0": (f"{name}0",), "depth 1": (name,)}


_LENGTH: dict[str, Reader] = {"length": whole}
_PRESCRIBED: dict[str, Reader] = {**_LENGTH, "depth": whole, "causal": flag, "require_nonnegative": flag}
_ESPA: dict[str, Reader] = {**_PRESCRIBED, "gamma": number, "gamma0": number, "gammas": numbers}
_USPA: dict[str, Reader] = {**_PRESCRIBED, "rho": finite, "rho0": finite, "rhos": numbers}
_SOFTMAX: dict[str, Reader] = {**_LENGTH, "causal": flag, "bias": _read_bias, "mask": array, "rescale": array}
_RANDOM: dict[str, Reader] = {
    **_SOFTMAX,
    "heads": whole,
    "tau": number,
    "draws": whole,
    "chains": whole,
    "seed": whole,
    "query_gain": number,
    "key_gain": number,
    "logit_scale": text,
    "rotary": _read_rotary,
}
_OF_BIAS = {"alibi": ("bias",), "t5": ("bias",)}
# Whose maker takes the depth; all others are one layer that the network repeats.
DEEP = ("espa", "uspa")
KINDS = {
    "espa": Kind(espa, _ESPA, ("length",), _ends("gamma")),
    "uspa": Kind(uspa, _USPA, ("length",), _ends("rho")),
    "uniform": Kind(uniform, {**_LENGTH, "causal": flag}, ("length",)),
    "identity": Kind(identity, _LENGTH, ("length",)),
    "sliding_window": Kind(sliding_window, {**_LENGTH, "width": whole, "causal": flag}, ("length", "width")),
    "dense": Kind(_dense, {"file": array, "matrix": array}, called={"attention": ("file", "matrix")}),
    "softmax": Kind(_softmax, _SOFTMAX, ("length",), _OF_BIAS),
    "random_softmax": Kind(_random, _RANDOM, ("length",), _OF_BIAS),
    "shaped": Kind(_shaped, {**_RANDOM, "alpha": number, "beta": number, "gamma": number}, ("length",), _OF_BIAS),
}
