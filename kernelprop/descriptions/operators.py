"""Attention operators as a table that ``[attention]`` reads back."""

from functools import singledispatch
from typing import Any

import numpy as np

from kernelprop.attention.block_diagonal import BlockDiagonal
from kernelprop.attention.identity import Identity
from kernelprop.attention.mixture import Mixture
from kernelprop.attention.random_softmax import RandomSoftmax
from kernelprop.attention.schedules import espa_schedule, uspa_schedule
from kernelprop.attention.semiseparable import Semiseparable
from kernelprop.attention.sliding_window import SlidingWindow
from kernelprop.attention.stack import AttentionStack
from kernelprop.attention.uniform import Uniform

Table = dict[str, Any]
Arrays = dict[str, np.ndarray]


def written_attention(operator: Any, depth: int) -> tuple[Table, Arrays]:
    """An operator as a table, and the arrays that stand in a file beside it, by name.

    Structures are written by their numbers; whatever has none of its own, as its matrices.
    """
    layer = operator.layers if isinstance(operator, AttentionStack) else operator
    table, arrays = written_layer(layer)
    return as_dense(operator, depth) if table is None else (_with_depth(table, depth), arrays)


def _with_depth(table: Table, depth: int) -> Table:
    """The depth right behind the length, where a reader looks for it."""
    return {"kind": table["kind"], "length": table["length"], "depth": depth, **table}


def as_dense(operator: Any, depth: int) -> tuple[Table, Arrays]:
    """An operator by its matrices."""
    return {"kind": "dense", "depth": depth, "file": "attention"}, {"attention": _matrices(operator, depth)}


@singledispatch
def written_layer(layer: Any) -> tuple[Table | None, Arrays]:
    """One structure; of a stack, all layers at once. None where there is nothing but the matrices."""
    return None, {}


@written_layer.register
def _(layer: Identity) -> tuple[Table | None, Arrays]:
    return {"kind": "identity", "length": layer.length}, {}


@written_layer.register
def _(layer: Uniform) -> tuple[Table | None, Arrays]:
    return {"kind": "uniform", "length": layer.length}, {}


@written_layer.register
def _(layer: SlidingWindow) -> tuple[Table | None, Arrays]:
    if layer.after not in (0, layer.before):
        return None, {}
    return {
        "kind": "sliding_window",
        "length": layer.length,
        "width": layer.before + 1,
        "causal": layer.after == 0,
    }, {}


@written_layer.register
def _(layer: Semiseparable) -> tuple[Table | None, Arrays]:
    numbers = layer.origin.numbers
    if layer.origin.name == "causal uniform":
        return {"kind": "uniform", "length": layer.length, "causal": True}, {}
    if layer.origin.name == "espa":
        gammas = _schedule(numbers["gamma_before"], numbers["gamma_after"])
        return {"kind": "espa", "length": layer.length, **_ends(gammas, "gamma", espa_schedule)}, {}
    if layer.origin.name == "uspa":
        rhos = _schedule(numbers["rho_before"], numbers["rho_after"])
        return {"kind": "uspa", "length": layer.length, **_ends(rhos, "rho", uspa_schedule)}, {}
    return None, {}


def _schedule(before: np.ndarray, after: np.ndarray) -> np.ndarray:
    return np.append(np.atleast_1d(before)[:1], after)


def _ends(schedule: np.ndarray, name: str, default: Any) -> Table:
    """The two ends of a schedule where they say it all, else every value."""
    ends = {name: float(schedule[-1]), f"{name}0": float(schedule[0])}
    falling = np.all(np.diff(schedule[np.isfinite(schedule)]) * (1 if name == "rho" else -1) >= 0)
    if falling and np.array_equal(default(len(schedule) - 1, **ends), schedule):
        return ends
    return {f"{name}s": schedule.tolist(), **({} if falling else {"require_nonnegative": False})}


@written_layer.register
def _(layer: Mixture) -> tuple[Table | None, Arrays]:
    table, arrays = written_layer(layer.inner)
    if table is None or "copies" in table:
        return None, {}
    # Weights that agree in all layers are one number where the inner operator has the layers.
    number = plain if table["kind"] in ("espa", "uspa") else lambda weight: np.asarray(weight, np.float64).tolist()
    one = {"alpha": number(layer.alpha), "beta": number(layer.beta)}
    mixes = [*table.pop("mix", []), one if layer.value_skip else {**one, "value_skip": False}]
    return {**table, "mix": mixes}, arrays


@written_layer.register
def _(layer: BlockDiagonal) -> tuple[Table | None, Arrays]:
    table, arrays = written_layer(layer.inner)
    if table is None or "copies" in table:
        return None, {}
    return {**table, "copies": layer.copies}, arrays


@written_layer.register
def _(layer: RandomSoftmax) -> tuple[Table | None, Arrays]:
    arrays: Arrays = {}
    weights = [float(w) for w in (layer.identity_weight, layer.softmax_weight, layer.centre_weight)]
    shaped = weights != [0.0, 1.0, 0.0]
    table: Table = {"kind": "shaped" if shaped else "random_softmax", "length": layer.length}
    if shaped:
        table |= dict(zip(("alpha", "beta", "gamma"), weights, strict=True))
    table |= {"tau": float(layer.tau), "chains": layer.chains, "seed": int(layer.seed)}
    table |= {"heads": layer.heads} if layer.heads is not None else {"draws": layer.draws}
    table |= {"query_gain": float(layer.query_gain), "key_gain": float(layer.key_gain)}
    table["logit_scale"] = layer.logit_scale
    if np.array_equal(layer.mask, np.tri(layer.length, dtype=bool)):
        table["causal"] = True
    elif not np.all(layer.mask):
        table["mask"] = "mask"
        arrays["mask"] = layer.mask if layer.mask.shape[0] > 1 else layer.mask[0]
    if np.any(layer.bias):
        table["bias"] = "bias"
        arrays["bias"] = layer.bias
    if layer.rescale is not None:
        table["rescale"] = np.asarray(layer.rescale).tolist()
    if layer.frequencies is not None:
        table["rotary"] = np.asarray(layer.frequencies).tolist()
    return table, arrays


def _matrices(operator: Any, depth: int) -> np.ndarray:
    """The matrices as `dense` takes them: a layer that has heads needs the layer axis too."""
    matrices = np.asarray(operator.as_matrix())
    if isinstance(operator, AttentionStack) or matrices.ndim == 2:
        return matrices
    return np.broadcast_to(matrices, (depth, *matrices.shape))


def plain(values: Any) -> Any:
    """A number, or the one number that all layers share, or the list of them."""
    array = np.asarray(values, np.float64)
    if array.ndim and np.all(array == array[0]):
        return float(array[0])
    return array.tolist()
