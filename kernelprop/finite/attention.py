"""The attention sublayer of a finite network: the one place where an attention softmax is taken."""

from functools import singledispatch
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from kernelprop.attention.softmax import softmax
from kernelprop.finite.logits import Scoring, logits_of_zero_queries, scaled_logits, split_heads
from kernelprop.finite.patterns import PlainPattern, SoftmaxPattern
from kernelprop.finite.products import Products


@singledispatch
def mix_positions(
    pattern: Any, product: Products, x: Float[Array, "T d"], values: Float[Array, "H T d_k"], temperature: Any
) -> Float[Array, "H T d_k"]:
    """``A_h V_h`` for every head."""
    raise TypeError(f"{type(pattern).__name__} is no attention pattern")


@mix_positions.register
def _plain(pattern: PlainPattern, product: Products, x: Array, values: Array, temperature: Any) -> Array:
    return _per_head(pattern.matrix, len(values), 2) @ values


@mix_positions.register
def _softmax(pattern: SoftmaxPattern, product: Products, x: Array, values: Array, temperature: Any) -> Array:
    heads = len(values)
    logits = _logits(pattern, product, x, heads, values.shape[-1], temperature)
    bias, mask = _per_head(pattern.bias, heads, 2), _per_head(pattern.mask, heads, 2)
    mixed = pattern.softmax * (attention_weights(logits, bias, mask) @ values)
    if pattern.centre is not None:
        mixed = mixed - pattern.centre * (attention_weights(None, bias, mask) @ values)
    if pattern.rescale is not None:
        mixed = _per_head(pattern.rescale, heads, 1)[..., None] * mixed
    return mixed + pattern.identity * values


def attend(
    pattern: Any, product: Products, x: Float[Array, "T d"], heads: int, temperature: Any
) -> Float[Array, "T d"]:
    """``concat_h(A_h X W_V^h) W_O``; the columns of ``W_V`` belong to the heads in turn, ``d_k`` each."""
    values = split_heads(product("value", x), heads)
    mixed = mix_positions(pattern, product, x, values, temperature)
    return product("output", jnp.moveaxis(mixed, 0, 1).reshape(len(x), -1))


def attention_weights(
    logits: Float[Array, "H T T"] | None, bias: Float[Array, "*heads rows T"], mask: Bool[Array, "*heads rows T"]
) -> Float[Array, "*heads T T"]:
    """``softmax(logits + B + mask)`` along keys, exact zeros where masked; a row of masked keys alone is zero.

    ``logits=None`` are zero: heads of one bias then share one matrix.
    """
    total = bias if logits is None else logits + bias
    length = total.shape[-1]
    return jnp.broadcast_to(softmax(total, mask), (*total.shape[:-2], length, length))


def _logits(
    pattern: SoftmaxPattern, product: Products, x: Array, heads: int, head_width: int, temperature: Any
) -> Float[Array, "H T T"] | None:
    """``τ (X W_Q)(X W_K)ᵀ / √d_k`` (or ``/ d_k``); None where the queries are zero and nobody asks for gradients."""
    scale = head_width**-0.5 if pattern.logit_scale == "sqrt" else 1 / head_width
    scoring = Scoring(temperature * pattern.tau * jnp.asarray(scale, x.dtype), pattern.frequencies)
    if "query" in product.weights:
        return scaled_logits(product("query", x), product("key", x), scoring, heads)
    if product.probes is not None and "query" in product.probes:
        return logits_of_zero_queries(x, product.weights["key"], scoring, product.probes["query"], heads)
    return None


def _per_head(array: Array, heads: int, own: int) -> Array:
    """Give an array of ``own`` axes, or with one more for heads, an axis of 1 or ``H``; fewer come in turn."""
    if array.ndim == own:
        return array[None]
    return jnp.tile(array, (heads // len(array), *(1,) * own))
