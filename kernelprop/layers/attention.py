"""The attention sublayer ``A X W_V W_O``."""

from collections.abc import Callable
from functools import singledispatch
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from kernelprop.attention.identity import Identity
from kernelprop.attention.layer import AttentionLayer, over_heads, sandwich
from kernelprop.layers.gains import Gains
from kernelprop.layers.pairing import pairing
from kernelprop.layers.score_gradients import Rows, score_rows
from kernelprop.split_kernel import SplitKernel, congruence


@singledispatch
def forward(layer: Any, kernel: SplitKernel, key: Array | None = None) -> SplitKernel:
    """``Σ ← mean_h A_h Σ A_hᵀ``; ``key`` draws attention that is random. One kind of attention, one registration."""
    raise TypeError(f"{type(layer).__name__} has no map of kernels")


@forward.register
def given(layer: AttentionLayer, kernel: SplitKernel, key: Array | None = None) -> SplitKernel:
    """The map of given matrices, the common part and the rest each on its own."""
    both = jnp.stack([jnp.ones_like(kernel.cross), kernel.cross])
    acted = over_heads(lambda one, x: one.act(x), layer, both).reshape(-1, *both.shape)
    return congruence(kernel, sandwich(layer, kernel.rest), acted[:, 0], acted[:, 1])


@forward.register
def untouched(layer: Identity, kernel: SplitKernel, key: Array | None = None) -> SplitKernel:
    """The map of ``A = I``: the kernel itself, parts and all."""
    return kernel


@singledispatch
def backward(
    layer: Any, gains: Gains | None, kernel: SplitKernel, cotangent: Float[Array, "T T"], key: Array | None = None
) -> tuple[Float[Array, "T T"], Rows]:
    """``G ← σ_V² σ_O² mean_h A_hᵀ G A_h``, and the gradient norms at width 1 of the sublayer's trainables.

    ``branch = ⟨G, Σ_branch⟩`` is among the rows: what the residual's weight ``β`` receives. ``key`` is the one that
    drew the forward pass. One kind of attention, one registration.
    """
    raise TypeError(f"{type(layer).__name__} has no map of cotangent kernels")


@backward.register
def given_backward(
    layer: AttentionLayer,
    gains: Gains | None,
    kernel: SplitKernel,
    cotangent: Float[Array, "T T"],
    key: Array | None = None,
) -> tuple[Float[Array, "T T"], Rows]:
    """The maps of given matrices, whose queries are zero: keys receive exactly nothing.

    Values and outputs are one number, ``⟨AᵀGA, Σ⟩ = ⟨G, AΣAᵀ⟩`` (theory: backward recursion), computed once.
    """

    def one_head(one: AttentionLayer) -> tuple[Array, Rows]:
        return one.sandwich_transposed(cotangent), score_rows(one, kernel, cotangent)

    pulled, rows = mean_over_heads(one_head, layer)
    return with_gains(gains, pulled, pairing(pulled, kernel), rows | {"key": jnp.zeros_like(kernel.common)})


def with_gains(
    gains: Gains | None, pulled: Float[Array, "T T"], through: Float[Array, ""], rows: Rows
) -> tuple[Float[Array, "T T"], Rows]:
    """Multiply the gains through; ``through = ⟨AᵀGA, Σ⟩``, every weight's own gain left out of its row."""
    if gains is None:
        return pulled, rows | {"value": through, "output": through, "branch": through}
    value, output = gains.value**2, gains.output**2
    through_values: Array = value * output
    scale = dict.fromkeys(rows, through_values)
    for name in scale.keys() & {"query", "query_rounding"}:
        scale[name] *= (gains.temperature * gains.key) ** 2
    scale["key"] *= (gains.temperature * gains.query) ** 2
    rows = {name: scale[name] * row for name, row in rows.items()}
    own = {"value": output * through, "output": value * through, "branch": value * output * through}
    return value * output * pulled, rows | own


def mean_over_heads(function: Callable[[AttentionLayer], Any], layer: AttentionLayer) -> Any:
    """Average a pytree of numbers over the heads, one head at a time to bound the memory."""
    if layer.heads is None:
        return function(layer)
    heads = jax.tree.map(jnp.asarray, layer.split_heads())
    shapes = jax.eval_shape(lambda: function(jax.tree.map(lambda leaf: leaf[0], heads)))
    zeros = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes)

    def add(total: Any, one: AttentionLayer) -> tuple[Any, None]:
        return jax.tree.map(jnp.add, total, function(one)), None

    total, _ = lax.scan(add, zeros, heads)
    return jax.tree.map(lambda leaf: leaf / layer.heads, total)
