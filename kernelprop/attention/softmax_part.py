"""What a softmax makes of an attention matrix, and what stands beside it: traceable, for gradients of scores."""

from dataclasses import replace
from functools import singledispatch
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from kernelprop.attention.block_diagonal import BlockDiagonal
from kernelprop.attention.dense import Dense
from kernelprop.attention.identity import Identity
from kernelprop.attention.layer import AttentionLayer
from kernelprop.attention.mixture import Mixture
from kernelprop.attention.uniform import Uniform


class SoftmaxPart(NamedTuple):
    """A layer as ``A = (a skip) + share · D P``, ``layer`` the operator ``D P`` of non-negative entries."""

    share: Float[Array, ""] | float
    layer: AttentionLayer


@singledispatch
def softmax_part(layer: AttentionLayer) -> SoftmaxPart:
    """The part of a headless layer that a softmax makes: all of it, unless the values have a skip of their own.

    Value-SkipInit ``αI + βDP`` has the share ``β`` (He et al. 2023, section 5; theory: Value-SkipInit).
    """
    return SoftmaxPart(1.0, layer)


@softmax_part.register
def _(layer: Mixture) -> SoftmaxPart:
    if not layer.value_skip:
        return SoftmaxPart(1.0, layer)
    share, inner = softmax_part(layer.inner)
    return SoftmaxPart(layer.beta * share, inner)


@softmax_part.register
def _(layer: BlockDiagonal) -> SoftmaxPart:
    share, inner = softmax_part(layer.inner)
    return SoftmaxPart(share, replace(layer, inner=inner))


@singledispatch
def has_value_skip(layer: AttentionLayer) -> bool:
    """Whether the values have a skip with trainable weights ``α`` and ``β``."""
    return False


@has_value_skip.register
def _(layer: Mixture) -> bool:
    return layer.value_skip


@has_value_skip.register
def _(layer: BlockDiagonal) -> bool:
    return has_value_skip(layer.inner)


@singledispatch
def entries(layer: AttentionLayer, dtype: np.dtype) -> Float[Array, "T T"]:
    """The matrix of a headless layer, traceable; for a structured one ``O(T²)``."""
    return layer.act(jnp.eye(layer.length, dtype=dtype)).T


@entries.register
def _(layer: Dense, dtype: np.dtype) -> Float[Array, "T T"]:
    return jnp.asarray(layer.entries, dtype)


@entries.register
def _(layer: Identity, dtype: np.dtype) -> Float[Array, "T T"]:
    return jnp.eye(layer.length, dtype=dtype)


@entries.register
def _(layer: Uniform, dtype: np.dtype) -> Float[Array, "T T"]:
    return jnp.full((layer.length, layer.length), 1 / layer.length, dtype)


@entries.register
def _(layer: Mixture, dtype: np.dtype) -> Float[Array, "T T"]:
    identity = jnp.eye(layer.length, dtype=dtype)
    return jnp.asarray(layer.alpha, dtype) * identity + jnp.asarray(layer.beta, dtype) * entries(layer.inner, dtype)
