"""The backward engine: expected gradient norms of every trainable, one scan forward and one back."""

import math
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np

from kernelprop import cotangents, door, memory
from kernelprop.architecture import Transformer
from kernelprop.attention.random_softmax import RandomSoftmax
from kernelprop.gradient_report import query_is_exact, report
from kernelprop.gradient_scans import Found, Settings, cast, scans
from kernelprop.infinite import checked_input, with_positions
from kernelprop.precision import float_dtype, in_double
from kernelprop.results import GradientNorms
from kernelprop.split_kernel import split
from kernelprop.unresolved import refuse_unresolved_slopes

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

    Under `random_softmax` every number is a mean over its chains, with its standard error in ``.stderr``; queries and
    keys are random there, and their scores have a way back of their own.

    Args:
        model: the network.
        kernel0: the input kernel ``Σ_0``, ``(T, T)``.
        cotangent: ``G_L``: None or ``"all"`` for the identity, ``"last"``, ``"mean"``, or a kernel ``(T, T)``, such as
            those of `kernelprop.cotangents`.
        width: ``d``; norms of weights grow as ``d²``, those of vectors and scalars as ``d``.
        query_method: ``"first_order"`` takes the values as independent of what the layers above do with them, which
            is exact where these are linear, or the heads infinitely many (`GradientNorms.query_exact`), and else up to
            tens of per cent off.
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
        ValueError: for a kernel or cotangent that is none, shapes that don't fit, or kernels that don't fit in memory;
            for an activation that grows too fast for its variance, with the layer and the variance.

    >>> import kernelprop as kp
    >>> norms = kp.gradient_norms(kp.Transformer(kp.uniform(4), depth=2), kp.kernels.identity(4))
    >>> norms.value
    array([1., 1.])
    """
    if query_method not in ("first_order", "exact", "sampled"):
        raise ValueError(f"query_method: {query_method!r} is unknown; use 'first_order', 'exact' or 'sampled'")
    kernel0 = checked_input(model, kernel0)
    if kernel0.ndim != 2:
        raise ValueError(f"kernel0: shape {kernel0.shape} is not (T, T); gradient norms take one kernel a call")
    above = cotangents.resolve(cotangent, model.length)
    width, dtype = door.count(width, "width"), float_dtype(dtype)
    _refuse_if_too_large(model, dtype, keep_cotangents, checkpoint)
    draws, seed = door.count(draws, "draws", least=2), _seed(seed)
    settings = Settings(keep_cotangents, checkpoint, _needed(model, query_method, checkpoint), draws)
    entering = with_positions(model, kernel0).astype(dtype)
    found = _norms(model, entering, above.astype(dtype), settings, seed)
    norms = report(model, found, width, query_method)
    if norms.value is not None and np.isnan(norms.value).any():
        refuse_unresolved_slopes(model, with_positions(model, kernel0))
    return norms


@in_double
def _norms(model: Transformer, kernel0: np.ndarray, above: np.ndarray, settings: Settings, seed: int) -> Found:
    model = jax.tree.map(lambda leaf: cast(leaf, kernel0.dtype), model)
    # A program of its own: made anew inside the scans, entries of equal rows would differ by their rounding.
    entered = jax.jit(split)(jnp.asarray(kernel0))
    return scans(model, entered, jnp.asarray(above), settings, jnp.asarray(seed, jnp.uint32))


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


def _needed(model: Transformer, query_method: QueryMethod, checkpoint: bool) -> QueryMethod:
    """The method that the scans take: the first order where it is exact. What isn't known is refused.

    Raises:
        ValueError: for what isn't known, and for what would take hours.
    """
    if query_method == "first_order":
        return query_method
    if isinstance(model.attention, RandomSoftmax):
        for index in np.flatnonzero(~query_is_exact(model))[:1].tolist():
            raise ValueError(
                f"query_method: {query_method!r}: layer {index + 1}: under random attention of "
                f"{model.attention.heads} heads it isn't known what the layers above add to a query row; use "
                "'first_order', or heads=None, where it is nothing"
            )
        return "first_order"
    if checkpoint:
        raise ValueError(f"query_method: {query_method!r} needs all layers' kernels: leave checkpoint out")
    operations = 4 * model.depth**2 * model.length**5
    if query_method == "exact" and operations > MOST_OPERATIONS:
        raise ValueError(
            f"query_method: 'exact' takes about 4 L² T⁵ = {operations:.1e} operations here; use 'sampled', which takes "
            "as many tangents a layer as you draw"
        )
    return query_method


def _seed(seed: Any) -> int:
    number = door.count(seed, "seed", least=0)
    if number >= 2**32:
        raise ValueError(f"seed: {number} is outside 0 to {2**32 - 1}")
    return number
