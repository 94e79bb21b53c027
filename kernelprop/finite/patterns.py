"""Attention as the finite network applies it: a softmax with ``D``, ``B`` and mask, or a plain matrix."""

from dataclasses import replace
from functools import singledispatch
from typing import Any, NamedTuple

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Bool, Float

from kernelprop.attention.block_diagonal import BlockDiagonal
from kernelprop.attention.layer import AttentionLayer
from kernelprop.attention.mixture import Mixture
from kernelprop.attention.random_softmax import RandomSoftmax
from kernelprop.attention.stack import AttentionStack


class SoftmaxPattern(eqx.Module):
    """``A = α I + D (β P − γ P_0)``, ``P = softmax(logits + B + mask)``, ``P_0`` the same at logits 0.

    A given matrix has ``γ = 0`` and logits 0 until its queries move; Value-SkipInit has ``α, β``. A row whose
    every key is masked is zero: that position gets nothing but ``α`` of itself.

    Shapes: ``bias (rows, T)`` or ``(H, rows, T)``, ``mask`` likewise, ``rows`` 1 or ``T``; ``rescale (T,)`` or
    ``(H, T)`` or None, which is 1; a leading layer axis where the layers differ. ``centre`` is γ, None where 0.
    """

    identity: Float[Any, ""]
    softmax: Float[Any, ""]
    centre: Float[Any, ""] | None
    rescale: Float[Any, "*heads T"] | None
    bias: Float[Any, "*heads rows T"]
    mask: Bool[Any, "*heads rows T"]
    tau: Float[Any, ""]
    query_gain: Float[Any, ""]
    key_gain: Float[Any, ""]
    frequencies: Float[Any, "m"] | None
    logit_scale: str = eqx.field(static=True)
    random_queries: bool = eqx.field(static=True)


class PlainPattern(eqx.Module):
    """A matrix that no softmax makes (negative entries, an empty row): applied as it is, without queries and keys.

    Shape ``(T, T)`` or ``(H, T, T)``, a leading layer axis where the layers differ.
    """

    matrix: Float[Any, "*heads T T"]


Pattern = SoftmaxPattern | PlainPattern


class Patterns(NamedTuple):
    """The attention of all layers: one pattern, with a leading layer axis if ``layered``, and its heads."""

    pattern: Pattern
    layered: bool
    heads: int | None


@singledispatch
def patterns(operator: Any) -> Patterns:
    """Realise an attention operator in a finite network. One kind of attention, one registration."""
    raise TypeError(f"attention: {type(operator).__name__} has no finite network")


@patterns.register
def _of_layer(operator: AttentionLayer) -> Patterns:
    return Patterns(_softmax_pattern(operator) or PlainPattern(operator.as_matrix()), False, operator.heads)


@patterns.register
def _of_stack(operator: AttentionStack) -> Patterns:
    """One structure for all layers: as soon as one has no softmax form, all are plain."""
    layers = [_softmax_pattern(layer) for layer in operator]
    if any(layer is None for layer in layers):
        return Patterns(PlainPattern(operator.as_matrix()), True, operator.heads)
    return Patterns(jax.tree.map(lambda *leaves: np.stack(leaves), *layers), True, operator.heads)


@patterns.register
def _of_random(operator: RandomSoftmax) -> Patterns:
    pattern = SoftmaxPattern(
        identity=operator.identity_weight,
        softmax=operator.softmax_weight,
        centre=operator.centre_weight if np.any(operator.centre_weight) else None,
        rescale=operator.rescale,
        bias=operator.bias,
        mask=operator.mask,
        tau=operator.tau,
        query_gain=operator.query_gain,
        key_gain=operator.key_gain,
        frequencies=operator.frequencies,
        logit_scale=operator.logit_scale,
        random_queries=True,
    )
    # Heads with a bias each: their number is fixed by the biases where it isn't by the operator.
    own = operator.bias_count if operator.bias_count > 1 else None
    return Patterns(pattern, False, operator.heads or own)


def _softmax_pattern(layer: AttentionLayer) -> SoftmaxPattern | None:
    """The softmax of one layer, a skip of the values apart; None where a softmax can't make it."""
    if isinstance(layer, Mixture) and layer.value_skip:
        inner = _softmax_pattern(layer.inner)
        return None if inner is None else _mixed(layer, inner)
    if isinstance(layer, BlockDiagonal) and isinstance(layer.inner, Mixture):
        mixture = layer.inner
        return _softmax_pattern(replace(mixture, inner=BlockDiagonal(mixture.inner, layer.copies)))
    try:
        form = layer.softmax_form()
    except ValueError:
        return None
    one = np.ones(())
    return SoftmaxPattern(
        identity=np.zeros(()),
        softmax=one,
        centre=None,
        rescale=form.rescale,
        bias=form.bias,
        mask=np.broadcast_to(form.mask, form.bias.shape),
        tau=one,
        query_gain=one,
        key_gain=one,
        frequencies=None,
        logit_scale="sqrt",
        random_queries=False,
    )


def _mixed(share: Mixture, inner: SoftmaxPattern) -> SoftmaxPattern:
    """``αI + β(α'I + β'DP)``."""
    alpha, beta = np.float64(share.alpha), np.float64(share.beta)
    return replace(inner, identity=np.asarray(alpha + beta * inner.identity), softmax=np.asarray(beta * inner.softmax))
