"""The attention sublayer of a finite network: the one place where an attention softmax is taken."""

from functools import singledispatch
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from kernelprop.finite.patterns import PlainPattern, SoftmaxPattern
from kernelprop.finite.products import Products


class HeadSizes(NamedTuple):
    """``H`` heads of width ``d_k``."""

    heads: int
    width: int


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
    logits = None
    if "query" in product.weights:
        logits = temperature * pattern.tau * _logits(pattern, product, x, HeadSizes(heads, values.shape[-1]))
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
    mask = jnp.broadcast_to(mask, total.shape)
    # The lowest number rather than −inf, so that a row without keys is no 0/0 and its gradient no NaN.
    weights = jax.nn.softmax(jnp.where(mask, total, jnp.finfo(total.dtype).min), axis=-1)
    length = total.shape[-1]
    return jnp.broadcast_to(jnp.where(mask, weights, 0), (*total.shape[:-2], length, length))


def _logits(pattern: SoftmaxPattern, product: Products, x: Array, sizes: HeadSizes) -> Float[Array, "H T T"]:
    """``(X W_Q)(X W_K)ᵀ / √d_k`` (or ``/ d_k``), rotated by position where positions are rotary."""
    queries, keys = (split_heads(product(name, x), sizes.heads) for name in ("query", "key"))
    if pattern.frequencies is not None:
        queries, keys = (rotate(side, pattern.frequencies) for side in (queries, keys))
    scale = sizes.width**-0.5 if pattern.logit_scale == "sqrt" else 1 / sizes.width
    return (queries @ jnp.swapaxes(keys, -1, -2)) * jnp.asarray(scale, x.dtype)


def rotate(x: Float[Array, "H T d_k"], frequencies: Float[Array, "m"]) -> Float[Array, "H T d_k"]:
    """Rotary positions: feature pairs ``(2p, 2p+1)`` of position ``i`` turned by ``i θ_{p mod m}``.

    ``d_k`` must be a multiple of ``2m``; each frequency then turns equally many pairs (Su et al. 2021,
    arXiv 2104.09864).
    """
    pairs = x.reshape(*x.shape[:-1], -1, 2)
    turns = jnp.tile(frequencies, pairs.shape[-2] // len(frequencies))
    angles = jnp.arange(x.shape[-2], dtype=x.dtype)[:, None] * turns[None, :]
    cosine, sine = jnp.cos(angles)[None], jnp.sin(angles)[None]
    even, odd = pairs[..., 0], pairs[..., 1]
    return jnp.stack([even * cosine - odd * sine, even * sine + odd * cosine], axis=-1).reshape(x.shape)


def split_heads(x: Float[Array, "T n"], heads: int) -> Float[Array, "H T d_k"]:
    """The columns of each head, head by head."""
    return jnp.moveaxis(x.reshape(len(x), heads, -1), 1, 0)


def _per_head(array: Array, heads: int, own: int) -> Array:
    """Give an array of ``own`` axes, or with one more for heads, an axis of 1 or ``H``; fewer come in turn."""
    if array.ndim == own:
        return array[None]
    return jnp.tile(array, (heads // len(array), *(1,) * own))
