"""The backward engine: expected gradient norms of every trainable, one scan forward and one back."""

import math
from functools import partial
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from kernelprop import cotangents, door, memory
from kernelprop.architecture import Transformer
from kernelprop.gradient_report import Found, report
from kernelprop.infinite import checked_input, with_positions
from kernelprop.layers import block, block_gradients, norm
from kernelprop.layers.block import Passage
from kernelprop.layers.block_tangents import BlockBends, block_bends, final_bend
from kernelprop.layers.pairing import pairing
from kernelprop.layers.score_gradients import Rows
from kernelprop.precision import float_dtype, in_double
from kernelprop.tangents import Above, exact_corrections, sampled_corrections
from kernelprop.results import GradientNorms
from kernelprop.split_kernel import SplitKernel, split

MOST_OPERATIONS = 2e14

QueryMethod = Literal["first_order", "exact", "sampled"]


def gradient_norms(
    model: Transformer,
    kernel0: Any,
    cotangent: Any = None,
    width: int = 1,
    query_method: QueryMethod = "first_order",
    *,
    dtype: Any = "float64",
    keep_cotangents: bool = False,
    checkpoint: bool = False,
    draws: int = 256,
    seed: int = 0,
) -> GradientNorms:
    """Expected squared Frobenius norms of a loss's gradients by every trainable, at infinite width.

    From the loss down, with ``d·G_ij = E⟨g_i, g_j⟩`` (theory: backward recursion): an MLP branch ``G ← α² G +
    β² σ₁² σ₂² G ∘ K̇``, an attention branch ``G ← α² G + β² σ_V² σ_O² mean_h A_hᵀ G A_h``, a norm the division by the
    roots of its diagonal. ``E‖∂loss/∂W_V‖² = d² ⟨AᵀGA, Σ⟩`` and so on, ``Σ`` what enters the weight. Weights of
    variance ``σ²/fan_in``, queries at zero. One scan forward, one back; the query part takes five products a layer.

    Args:
        model: the network.
        kernel0: the input kernel ``Σ_0``, ``(T, T)``.
        cotangent: ``G_L``: None or ``"all"`` for the identity, ``"last"``, ``"mean"``, or a kernel ``(T, T)``, such as
            those of `kernelprop.cotangents`.
        width: ``d``; norms of weights grow as ``d²``, those of vectors and scalars as ``d``.
        query_method: ``"first_order"`` takes the values as independent of what the layers above do with them, which
            is exact where these are linear (`GradientNorms.query_exact`) and else up to tens of per cent off.
            ``"exact"`` adds what norms and MLPs above feel of the moved values, at any depth, in ``O(L² T⁵)``;
            ``"sampled"`` estimates it from ``draws`` random tangents a layer, with its standard error. Both take the
            matrices of attention without a head axis as one head's.
        dtype: float64, or float32 on request.
        keep_cotangents: whether the cotangent kernels at depths ``0…L`` are returned.
        checkpoint: keep the kernels of ``O(√L)`` layers instead of all, at the cost of a second forward pass; for
            the first-order query row only.
        draws: tangents a layer of the sampled correction.
        seed: of these, 0 to 2³²−1.

    Returns:
        `GradientNorms` of numpy arrays of that dtype.

    Raises:
        ValueError: for a kernel or cotangent that is none, shapes that don't fit, or kernels that don't fit in memory.

    >>> import kernelprop as kp
    >>> norms = kp.gradient_norms(kp.Transformer(kp.uniform(4), depth=2), kp.kernels.identity(4))
    >>> norms.value
    array([1., 1.])
    """
    if query_method not in ("first_order", "exact", "sampled"):
        raise ValueError(f"query_method: {query_method!r} is unknown; use 'first_order', 'exact' or 'sampled'")
    kernel0 = checked_input(model, kernel0)
    if kernel0.ndim != 2:
        raise ValueError(f"kernel0: shape {kernel0.shape} is not (T, T); gradient norms take one kernel at a time")
    above = cotangents.resolve(cotangent, model.length)
    width, dtype = door.count(width, "width"), float_dtype(dtype)
    _refuse_if_too_large(model, dtype, keep_cotangents, checkpoint)
    settings = Settings(keep_cotangents, checkpoint, query_method, door.count(draws, "draws", least=2))
    _refuse_query_method(model, settings)
    entering = with_positions(model, kernel0).astype(dtype)
    found = _norms(model, entering, above.astype(dtype), settings, _seed(seed))
    return report(model, found, width, query_method)


class Steps(NamedTuple):
    """What one layer of the scans takes; ``active`` is None, or whether the layer is one of the network's."""

    layered: block.Block
    active: Array | None


class Settings(NamedTuple):
    """What is compiled into the scans."""

    keep_cotangents: bool
    checkpoint: bool
    query_method: str
    draws: int


class Layerwise(NamedTuple):
    """What the way back leaves of every layer, the last two None where they aren't wanted."""

    rows: Rows
    pulled: Float[Array, "*layers T T"] | None
    bends: BlockBends | None


@in_double
def _norms(model: Transformer, kernel0: np.ndarray, above: np.ndarray, settings: Settings, seed: int) -> Found:
    model = jax.tree.map(lambda leaf: _cast(leaf, kernel0.dtype), model)
    return _scans(model, jnp.asarray(kernel0), jnp.asarray(above), settings, jnp.asarray(seed, jnp.uint32))


@partial(jax.jit, static_argnums=3)
def _scans(
    model: Transformer, kernel0: Float[Array, "T T"], above: Float[Array, "T T"], settings: Settings, seed: Array
) -> Found:
    entered, stderr = split(kernel0), {}
    if settings.checkpoint:
        below, found, final = _by_segments(model, entered, above, settings)
    else:
        steps = Steps(model.layered(), None)
        last, passages = _through(model, entered, steps)
        pulled, final = _final_norm(model, last, above)
        below, found = _back(model, pulled, steps, passages, settings)
        if found.bends is not None:
            bend = final_bend(model.norm, last, above) if final else None
            upper = Above(steps.layered, passages, found.bends, bend)
            rows, stderr = _corrected(model, found.rows, upper, settings, jax.random.key(seed))
            found = found._replace(rows=rows)
    rows = found.rows | final | {"input": jnp.trace(below)}
    return Found(rows, stderr, None if found.pulled is None else jnp.concatenate([found.pulled, above[None]]))


def _by_segments(
    model: Transformer, entered: SplitKernel, above: Float[Array, "T T"], settings: Settings
) -> tuple[Array, Layerwise, Rows]:
    """Both ways, segment by segment of about ``√L`` layers, whose kernels alone are held at a time."""
    segments = _segments(model, math.isqrt(model.depth - 1) + 1)
    last, starts = lax.scan(lambda state, steps: (_through(model, state, steps)[0], state), entered, segments)
    pulled, final = _final_norm(model, last, above)

    def back(pulled: Array, segment: tuple[SplitKernel, Steps]) -> tuple[Array, Layerwise]:
        start, steps = segment
        return _back(model, pulled, steps, _through(model, start, steps)[1], settings)

    below, found = lax.scan(back, pulled, (starts, segments), reverse=True)
    return below, jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:])[: model.depth], found), final


def _through(model: Transformer, state: SplitKernel, steps: Steps) -> tuple[SplitKernel, Passage]:
    """Forward through some layers, with what the way back needs of each."""

    def layer(state: SplitKernel, step: Steps) -> tuple[SplitKernel, Passage]:
        after, kept = block.passage(model.block(step.layered), state)
        if step.active is None:
            return after, kept
        return jax.tree.map(lambda new, old: jnp.where(step.active, new, old), after, state), kept

    return lax.scan(layer, state, steps, length=model.depth if steps.active is None else None)


def _back(
    model: Transformer, pulled: Float[Array, "T T"], steps: Steps, passages: Passage, settings: Settings
) -> tuple[Array, Layerwise]:
    """Back through the same layers: what each leaves, and the cotangent kernel that enters the first."""

    def layer(pulled: Array, step: tuple[Steps, Passage]) -> tuple[Array, Layerwise]:
        own, passed = step
        here = model.block(own.layered)
        below, rows, inner = block_gradients.backward(here, passed, pulled)
        if own.active is not None:
            below = jnp.where(own.active, below, pulled)
        bends = None if settings.query_method == "first_order" else block_bends(here, passed, inner)
        return below, Layerwise(rows, below if settings.keep_cotangents else None, bends)

    return lax.scan(layer, pulled, (steps, passages), reverse=True)


def _corrected(model: Transformer, rows: Rows, above: Above, settings: Settings, key: Array) -> tuple[Rows, Rows]:
    """Rows with what the layers above add beyond the first order, and the standard errors of those sampled."""
    if settings.query_method == "exact":
        more, stderr = exact_corrections(model, above), {}
    else:
        more, stderr = sampled_corrections(model, above, key, settings.draws)
    return rows | {name: rows[name] + row for name, row in more.items()}, stderr


def _segments(model: Transformer, count: int) -> Steps:
    """The layers in segments of ``count``; those past the last repeat it and are not active."""
    segments = -(-model.depth // count)
    missing = segments * count - model.depth

    def cut(leaf: Array) -> Array:
        return jnp.pad(leaf, [(0, missing)] + [(0, 0)] * (leaf.ndim - 1), mode="edge").reshape(
            segments, count, *leaf.shape[1:]
        )

    return Steps(jax.tree.map(cut, model.layered()), cut(jnp.arange(segments * count) < model.depth)[:segments])


def _final_norm(model: Transformer, last: SplitKernel, above: Float[Array, "T T"]) -> tuple[Array, Rows]:
    if model.norm is None or not model.norm.final:
        return above, {}
    return norm.backward(model.norm, last.diagonal(), above), {
        "final_norm": pairing(above, norm.forward(model.norm, last))
    }


def _cast(leaf: Any, dtype: np.dtype) -> Array:
    """Numbers become the dtype computed in; masks and seeds stay what they are."""
    return jnp.asarray(leaf, dtype if jnp.issubdtype(jnp.result_type(leaf), jnp.floating) else None)


def _refuse_if_too_large(model: Transformer, dtype: np.dtype, keep_cotangents: bool, checkpoint: bool) -> None:
    """Kernels in front of both sublayers of every layer are kept, and a dozen to work in."""
    available = memory.available_bytes()
    held = 2 * (math.isqrt(model.depth - 1) + 1) if checkpoint else model.depth
    kernels = held * (1 if model.mlp is None or model.parallel else 2) + 12 + keep_cotangents * (model.depth + 1)
    size = model.length**2 * dtype.itemsize
    if available is None or kernels * size <= available:
        return
    advice = "shorten T" if checkpoint and not keep_cotangents else "use checkpoint=True, without keep_cotangents"
    raise ValueError(
        f"gradient_norms: {kernels} kernels of {memory.in_words(size)} need {memory.in_words(kernels * size)}, and "
        f"{memory.in_words(available)} are available; {advice}"
    )


def _refuse_query_method(model: Transformer, settings: Settings) -> None:
    """Refuse what isn't known, and what would take hours."""
    if settings.query_method == "first_order":
        return
    if settings.checkpoint:
        raise ValueError(f"query_method: {settings.query_method!r} needs all layers' kernels: leave checkpoint out")
    operations = 4 * model.depth**2 * model.length**5
    if settings.query_method == "exact" and operations > MOST_OPERATIONS:
        raise ValueError(
            f"query_method: 'exact' takes about 4 L² T⁵ = {operations:.1e} operations here; use 'sampled', which takes "
            "as many tangents a layer as you draw"
        )


def _seed(seed: Any) -> int:
    number = door.count(seed, "seed", least=0)
    if number >= 2**32:
        raise ValueError(f"seed: {number} is outside 0 to {2**32 - 1}")
    return number
