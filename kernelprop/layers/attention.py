"""The attention sublayer ``A X W_V W_O``."""

from functools import singledispatch
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array

from kernelprop.attention.layer import AttentionLayer, over_heads, sandwich
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
