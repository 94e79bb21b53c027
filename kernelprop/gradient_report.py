"""From the backward engine's numbers to a result: powers of the width, weights' own norms, what is exact."""

from typing import Any

import numpy as np

from kernelprop.activations.polynomials import Linear
from kernelprop.architecture import Transformer
from kernelprop.attention.layer import AttentionLayer
from kernelprop.attention.random_softmax import RandomSoftmax
from kernelprop.attention.softmax_part import softmax_part
from kernelprop.attention.stack import AttentionStack
from kernelprop.gradient_scans import Found
from kernelprop.layers.gated_mlp import GatedMLP
from kernelprop.layers.mlp import MLP
from kernelprop.results import GradientNorms

# Weights of two wide axes get d² of the width-free norm, vectors and scalars d.
MATRICES = ("query", "query_rounding", "key", "value", "output", "mlp_in", "mlp_gate", "mlp_out")
SAMPLED = "query, bias and rescale are estimates, with standard errors in stderr"
APPROXIMATE = (
    "query (tens of per cent), bias, rescale, mix_… and residual weights (several times) are at first order where "
    "query_exact is False: query_method='exact' or 'sampled' corrects them"
)
OF_FEW_HEADS = (
    "query, key, bias, rescale, mix_… and residual weights are at first order where query_exact is False, and so are "
    "the scores' paths to the rows below: what they miss falls as 1/heads"
)
OF_ALL_HEADS = (
    "mix_… and residual weights, which move all heads at once, are at first order below norms, nonlinear MLPs and "
    "random attention"
)


def report(model: Transformer, found: Found, width: int, query_method: str) -> GradientNorms:
    """Put a result together for the width, from numbers at width 1."""
    rows = _scaled(found.rows, width)
    rows = {name: row for name, row in rows.items() if not _lacks(model, name)}
    exact = query_is_exact(model) | (query_method == "exact")
    lacking = dict.fromkeys({"mlp_in", "mlp_out"} - set(rows))
    return GradientNorms(
        **rows,
        **lacking,
        query_exact=exact,
        width=width,
        weight_norms=weight_norms(model, width),
        stderr=_scaled(found.stderr, width) or None,
        cotangents=None if found.pulled is None else np.asarray(found.pulled),
        description=model,
        notes=_notes(model, rows["query"], exact, query_method),
    )


def _scaled(rows: dict[str, Any], width: int) -> dict[str, np.ndarray]:
    return {n: np.asarray(row * row.dtype.type(width) ** (2 if n in MATRICES else 1)) for n, row in rows.items()}


def query_is_exact(model: Transformer) -> np.ndarray:
    """Where the first-order query row is exact, bool ``(L,)``.

    Where everything above the attention sublayer is linear (no norm, nonlinear MLP or random scores), and everywhere
    where infinitely many heads share the values: what one head moves is then no part of what the layers above act on.

    >>> import kernelprop as kp
    >>> query_is_exact(kp.Transformer(kp.uniform(4), depth=2, norm="pre"))
    array([False,  True])
    """
    return np.ones(model.depth, bool) if has_endless_heads(model) else _is_linear_above(model)


def has_endless_heads(model: Transformer) -> bool:
    """Whether its attention is a mean over infinitely many heads."""
    return isinstance(model.attention, RandomSoftmax) and model.attention.heads is None


def _is_linear_above(model: Transformer) -> np.ndarray:
    if model.norm is not None and (model.norm.place == "post" or model.norm.final):
        return np.zeros(model.depth, bool)
    thinks = _bends(model) & _reaches(model, "mlp")
    bent = model.norm is not None or _is_random(model)
    attends = np.full(model.depth, bent) & _reaches(model, "attention")
    whole = thinks | attends
    above = np.cumsum(whole[::-1])[::-1] - whole
    return (above == 0) & (model.parallel | ~thinks)


def _bends(model: Transformer) -> np.ndarray:
    """Whether the MLP branches are nonlinear, the norm in front of them included."""
    mlp = model.mlp
    linear = mlp is None or (model.norm is None and isinstance(mlp, MLP) and isinstance(mlp.activation, Linear))
    return np.full(model.depth, not linear)


def _reaches(model: Transformer, sublayer: str) -> np.ndarray:
    """Whether the branch has a weight other than 0."""
    if model.residual is None:
        return np.ones(model.depth, bool)
    return np.asarray(getattr(model.residual, sublayer)[1]) != 0


def weight_norms(model: Transformer, width: int) -> dict[str, np.ndarray]:
    """``E‖W‖²_F`` of every weight, ``(L,)``: ``d σ²``, ``e d σ²`` for those into the MLP, 0 for the queries."""
    ones = np.ones(model.depth)
    gains = model.gains
    value, output, key, query = (ones,) * 4
    if gains is not None:
        value, output, key, query = (g**2 for g in (gains.value, gains.output, gains.key, gains.query))
    # Given attention starts with its queries at zero.
    query = query * (model.attention.query_gain**2 if isinstance(model.attention, RandomSoftmax) else 0)
    if isinstance(model.attention, RandomSoftmax):
        key = key * model.attention.key_gain**2
    norms = {"query": query, "key": key, "value": value, "output": output}
    if model.mlp is not None:
        expanded = model.mlp.expansion
        norms |= {"mlp_in": expanded * model.mlp.gain_in**2, "mlp_out": model.mlp.gain_out**2}
        if isinstance(model.mlp, GatedMLP):
            norms["mlp_gate"] = expanded * model.mlp.gain_gate**2
    return {name: width * np.asarray(value, np.float64) for name, value in norms.items()}


def _is_random(model: Transformer) -> bool:
    return isinstance(model.attention, RandomSoftmax) and model.attention.is_random


def _lacks(model: Transformer, name: str) -> bool:
    """Biases of variance 0 are none, and random attention that is not shaped has no weights of its parts."""
    if isinstance(model.mlp, MLP) and name in ("mlp_bias_in", "mlp_bias_out"):
        return not np.any(getattr(model.mlp, name.removeprefix("mlp_")))
    if isinstance(model.attention, RandomSoftmax) and name.startswith("mix_"):
        return not _is_shaped(model.attention)
    return False


def _is_shaped(attention: RandomSoftmax) -> bool:
    """Whether it is more than a softmax, ``αI + D(βP − γP_0)``."""
    parts = attention.identity_weight, attention.softmax_weight, attention.centre_weight
    return [float(part) for part in parts] != [0, 1, 0]


def _notes(model: Transformer, query: np.ndarray, exact: np.ndarray, query_method: str) -> tuple[str, ...]:
    notes = []
    if has_endless_heads(model):
        scalars = model.residual is not None or _is_shaped(model.attention)
        notes += [OF_ALL_HEADS] if scalars and not _is_linear_above(model).all() else []
    elif not exact.all():
        approximate = OF_FEW_HEADS if _is_random(model) else APPROXIMATE
        notes.append(SAMPLED if query_method == "sampled" else approximate)
    without = without_softmax(model, np.isnan(query))
    if without.any():
        why = "negative entries, or an empty row"
        notes.append(f"no softmax makes the attention of layer {_layers(without)} ({why}): no query row")
    overflown = ~np.isfinite(query) & ~without
    if overflown.any():
        notes.append(f"the query row overflows in layer {_layers(overflown)}: {query.dtype} has no number so large")
    return (*notes, model.attention.in_words()) if _is_random(model) else tuple(notes)


def without_softmax(model: Transformer, asked: np.ndarray) -> np.ndarray:
    """Which of the layers asked about, bool ``(L,)``, have attention with negative entries or an empty row.

    >>> import kernelprop as kp
    >>> matrices = [[[1.0, 0.0], [0.0, 1.0]], [[1.0, -1.0], [0.0, 1.0]]]
    >>> without_softmax(kp.Transformer(kp.dense(matrices)), np.ones(2, bool))
    array([False,  True])
    """
    attention = model.attention
    if isinstance(attention, RandomSoftmax) or not asked.any():
        return np.zeros(model.depth, bool)
    if not isinstance(attention, AttentionStack):
        return asked & _is_no_softmax(attention)
    found = np.zeros(model.depth, bool)
    for layer in np.flatnonzero(asked).tolist():
        found[layer] = _is_no_softmax(attention[layer])
    return found


def _is_no_softmax(layer: AttentionLayer) -> bool:
    matrix = softmax_part(layer).layer.matrix()
    return bool((matrix < 0).any() or not (matrix.sum(-1) > 0).all())


def _layers(chosen: np.ndarray) -> str:
    layers = np.flatnonzero(chosen) + 1
    return ", ".join(map(str, layers[:8].tolist())) + (", …" if len(layers) > 8 else "")
