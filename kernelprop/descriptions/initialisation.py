"""How every weight of a network starts: its shape and the exact variance of its entries."""

from typing import NamedTuple

import numpy as np

from kernelprop.architecture import Transformer
from kernelprop.attention.random_softmax import RandomSoftmax
from kernelprop.descriptions.numerals import factor, first, is_one, numeral
from kernelprop.layers.gated_mlp import GatedMLP

Symbols = dict[str, tuple[str, np.ndarray | float]]


class Weight(NamedTuple):
    """One weight: its name, its shape, the variance of its entries as a formula, and a word of why."""

    name: str
    shape: str
    variance: str
    note: str = ""


def initialisation(model: Transformer) -> list[Weight]:
    """Every weight of a block, in the order in which the signal meets them.

    ``d`` is the width, ``H`` the number of heads and ``d_k`` the width of each; entries are independent with mean 0.

    >>> import kernelprop as kp
    >>> for weight in initialisation(kp.Transformer(kp.espa(8, 4), mlp=kp.MLP("gelu", gain_in=1.5))):
    ...     print(weight.name, weight.shape, weight.variance)
    W_Q (d, H d_k) 0
    W_K (d, H d_k) 1/d
    W_V (d, H d_k) 1/d
    W_O (H d_k, d) 1/(H d_k)
    W_1 (d, 4 d) 2.25/d
    W_2 (4 d, d) 1/(4 d)
    """
    gains = attention_gains(model)
    inward, outward = "(d, H d_k)", "(H d_k, d)"
    random = is_random(model)
    query = _over("d", gains["query"]) if random else "0"
    reason = "" if random else "so that the logits are 0, the attention A"
    weights = [
        Weight("W_Q", inward, query, reason),
        Weight("W_K", inward, _over("d", gains["key"])),
        Weight("W_V", inward, _over("d", gains["value"])),
        Weight("W_O", outward, _over("H d_k", gains["output"])),
    ]
    return weights + ([] if model.mlp is None else _mlp(model.mlp))


def _mlp(mlp) -> list[Weight]:
    inner = "d" if mlp.expansion == 1 else f"{numeral(mlp.expansion)} d"
    weights = [Weight("W_1", f"(d, {inner})", _over("d", ("σ₁", mlp.gain_in)))]
    if isinstance(mlp, GatedMLP):
        weights.append(Weight("W_g", f"(d, {inner})", _over("d", ("σ_g", mlp.gain_gate))))
    weights.append(Weight("W_2", f"({inner}, d)", _over(inner, ("σ₂", mlp.gain_out))))
    for name, shape, symbol, values in (
        ()
        if isinstance(mlp, GatedMLP)
        else (
            ("b_1", f"({inner},)", "v₁", mlp.bias_in),
            ("b_2", "(d,)", "v₂", mlp.bias_out),
        )
    ):
        if np.any(values):
            weights.append(Weight(name, shape, numeral(first(values)) if is_one(values) else symbol))
    return weights


def is_random(model: Transformer) -> bool:
    """Whether queries are random at initialisation."""
    return isinstance(model.attention, RandomSoftmax)


def attention_gains(model: Transformer) -> Symbols:
    """The gains of the attention's weights, the operator's own included, by name with their symbols."""
    symbols = {"query": "σ_Q", "key": "σ_K", "value": "σ_V", "output": "σ_O"}
    gains: Symbols = {
        name: (symbol, 1.0 if model.gains is None else getattr(model.gains, name)) for name, symbol in symbols.items()
    }
    operator = model.attention
    if isinstance(operator, RandomSoftmax):
        for name, own in (("query", operator.query_gain), ("key", operator.key_gain)):
            gains[name] = (gains[name][0], np.asarray(gains[name][1]) * own)
    return gains


def _over(fan_in: str, gain: tuple[str, np.ndarray | float]) -> str:
    """``σ²/fan_in``."""
    if is_one(gain[1]) and first(gain[1]) == 0:
        return "0"
    below = f"({fan_in})" if " " in fan_in else fan_in
    return f"{factor(*gain, 2) or '1'}/{below}"
