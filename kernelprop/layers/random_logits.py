"""Softmax attention matrices drawn at the logits of random queries and keys."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Key

from kernelprop.attention.random_softmax import RandomSoftmax
from kernelprop.attention.softmax import softmax
from kernelprop.attention.softmax_change import softmax_change
from kernelprop.precision import full_product
from kernelprop.split_kernel import SplitKernel

# A negative eigenvalue of this share of the largest says that the centred part is made of rounding.
LOST = 0.01


class Factor(NamedTuple):
    """Rows ``f_i = common + apart_i`` with ``f_i · f_j = Σ_ij``, each part to its own relative precision.

    ``common · common = s``, ``common · apart_i = v_i`` and ``apart apartᵀ = R``.
    """

    common: Float[Array, "n"]
    apart: Float[Array, "T n"]


class Draw(NamedTuple):
    """One attention matrix ``A = αI + D (1 cᵀ + apart)``: a row that all share, and what each has beside it."""

    row: Float[Array, "T"]
    apart: Float[Array, "T T"]


def factor(kernel: SplitKernel) -> Factor:
    """The symmetric root of the covariance of common and centred part, each scaled to size 1.

    An eigenvalue within ``10 T eps λ_max`` of 0 is rounding and counts as 0, as do all negative ones.
    """
    joint, common_size, size = _scaled(kernel)
    values, vectors = jnp.linalg.eigh(joint)
    kept = values * (values > _rounding(kernel) * values[-1])
    root = full_product(vectors * jnp.sqrt(kept)[None, :], vectors.T)
    return Factor(jnp.sqrt(common_size) * root[0], jnp.sqrt(size) * root[1:])


def lost_to_rounding(kernel: SplitKernel) -> Bool[Array, ""]:
    """Whether the parts are no longer those of a kernel.

    An eigenvalue is below ``−10 T eps λ_max(Σ)``, or so low beside those of the centred part that this is itself
    rounding.
    """
    joint, _, size = _scaled(kernel)
    values = jnp.linalg.eigvalsh(joint)
    total = _over(kernel.cross.shape[0] * kernel.common + jnp.sum(jnp.diagonal(kernel.rest)), size)
    tolerance = jnp.minimum(_rounding(kernel) * jnp.maximum(total, values[-1]), LOST * values[-1])
    return values[0] < -tolerance


def _scaled(kernel: SplitKernel) -> tuple[Float[Array, "n n"], Float[Array, ""], Float[Array, ""]]:
    """``[[s, vᵀ], [v, R]]``, its first row and column scaled to size 1 apart from the others, and both sizes."""
    size = jnp.max(jnp.abs(jnp.diagonal(kernel.rest)))
    # A common part below the rounding of the rest says nothing: scaled to 1 its cross part would be noise.
    common_size = jnp.maximum(kernel.common, _rounding(kernel) * size)
    cross = _over(_over(kernel.cross, jnp.sqrt(common_size)), jnp.sqrt(size))
    corner = _over(kernel.common, common_size)[None, None]
    return jnp.block([[corner, cross[None, :]], [cross[:, None], _over(kernel.rest, size)]]), common_size, size


def _rounding(kernel: SplitKernel) -> float:
    """``10 T eps``."""
    return 10 * kernel.cross.shape[0] * float(jnp.finfo(kernel.rest.dtype).eps)


def sample_attention(
    layer: RandomSoftmax, kernel: SplitKernel, key: Key[Array, ""], head: Array | int = 0
) -> Float[Array, "T T"]:
    """``P = softmax(M + B + mask)``, one draw of the logits ``M``; ``head`` picks the bias, where there are several."""
    common, apart = logits(layer, factor(kernel), key)
    return softmax(_base(layer, head, apart.dtype) + common + apart)


def draw(layer: RandomSoftmax, root: Factor, key: Key[Array, ""] | None, head: Array | int) -> Draw:
    """``β P − γ P_0`` of one head as a common row and the rest of the rows.

    Near collapse the rows of ``P`` agree up to ``O(ε)``, and what they differ by is all that the next layer's
    centred part is made of: it comes from the logits' own differences, never from those of probabilities.
    """
    dtype = root.apart.dtype
    base = _base(layer, head, dtype)
    common, apart = (jnp.zeros((1, layer.length), dtype),) * 2 if key is None else logits(layer, root, key)
    at_rest, common_change = softmax_change(base, common)
    _, own_change = softmax_change(base + common, apart)
    fixed = (layer.softmax_weight - layer.centre_weight) * at_rest + layer.softmax_weight * common_change
    row = fixed[-1]
    # Rows without a bias or mask of their own are equal to the last bit, and this difference is exactly 0.
    own = (fixed - row[None, :]) + layer.softmax_weight * own_change
    return Draw(row, jnp.broadcast_to(own, (layer.length, layer.length)))


def logits(layer: RandomSoftmax, root: Factor, key: Key[Array, ""]) -> tuple[Float[Array, "1 T"], Float[Array, "T T"]]:
    """One draw of ``M = τ σ_Q σ_K F Z Fᵀ``, up to a number a row: the part that all rows share, and the rest.

    What the keys have in common moves a whole row of logits, which the softmax does not feel. Under rotary
    positions it does, and no part is shared.
    """
    strength = layer.tau * layer.query_gain * layer.key_gain
    width, dtype = root.common.shape[0], root.apart.dtype
    if layer.frequencies is not None:
        return jnp.zeros((1, layer.length), dtype), strength * _rotary(layer, root, key)
    keys = full_product(jax.random.normal(key, (width, width), dtype), root.apart.T)
    return strength * full_product(root.common[None, :], keys), strength * full_product(root.apart, keys)


def _rotary(layer: RandomSoftmax, root: Factor, key: Key[Array, ""]) -> Float[Array, "T T"]:
    """``m^{−1/2} Σ_k [cos θ_k(i−j) F Z_k Fᵀ + sin θ_k(i−j) F Z'_k Fᵀ]``, one frequency at a time."""
    rows = root.apart + root.common[None, :]
    position = jnp.arange(layer.length, dtype=rows.dtype)
    lag = position[:, None] - position[None, :]
    frequencies = jnp.asarray(layer.frequencies)
    count = frequencies.shape[0]

    def add(total: Array, step: tuple[Array, Array]) -> tuple[Array, None]:
        number, frequency = step
        both = jax.random.normal(jax.random.fold_in(key, number), (2, rows.shape[1], rows.shape[1]), rows.dtype)
        cosine, sine = full_product(full_product(rows, both), rows.T)
        return total + jnp.cos(frequency * lag) * cosine + jnp.sin(frequency * lag) * sine, None

    total, _ = lax.scan(add, jnp.zeros_like(lag), (jnp.arange(count), frequencies))
    return total / jnp.sqrt(jnp.asarray(count, rows.dtype))


def _base(layer: RandomSoftmax, head: Array | int, dtype: jnp.dtype) -> Float[Array, "rows T"]:
    """``B + mask`` of one head, −∞ where masked; a single row where all are alike."""
    bias = jnp.asarray(layer.bias, dtype)
    return jnp.where(layer.mask, bias[head] if bias.ndim == 3 else bias, -jnp.inf)


def _over(value: Array, size: Array) -> Array:
    """``value / size``, and 0 where the size is 0."""
    return jnp.where(size > 0, value / jnp.where(size > 0, size, 1), 0.0)
