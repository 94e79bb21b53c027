"""What the layers above add to a row of gradient norms beyond the first order, at any depth.

At ``W_Q = 0`` the gradient by one entry ``(a, b)`` of ``W_Q`` is the loss along one tangent ``ẏ = N v``, a mixing of
the positions' values: ``N = τ σ_K diag(ξ) D (P diag(κ) − diag(Pκ) P)``, with ``ξ`` and ``κ`` the features ``a`` and
``b`` of queries' and keys' inputs over positions, independent Gaussian vectors of covariance ``Σ`` at infinite width.
The tangent's kernel ``β² NΣNᵀ`` goes up the network with its overlap ``X = β² AΣNᵀ`` with what it is a tangent of (see
`kernelprop.layers.bends`); averaged over ``ξ, κ`` the first gives the first-order row and the second the correction.
The average of a quadratic form is its sum over the columns of a factor ``F Fᵀ = Σ``: ``T²`` overlaps a layer, exact;
or its mean over random signs, ``ξ = Fε``: a few hundred, with a standard error. Biases, rescalings and scalar weights
have tangents of their own, and the same corrections.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, Key

from kernelprop.architecture import Transformer
from kernelprop.attention.layer import AttentionLayer
from kernelprop.layers import block
from kernelprop.layers.attention import mean_over_heads
from kernelprop.layers.bends import Bend
from kernelprop.layers.block import Block, Passage
from kernelprop.layers.block_tangents import BlockBends, through_block, through_mlp_sum, through_rest
from kernelprop.layers.score_gradients import Rows, centre
from kernelprop.layers.tangent_sources import (
    HeadSource,
    at_attention_sum,
    at_mlp_sum,
    attention_weight,
    head_source,
)
from kernelprop.precision import full_product

# Entries of the overlaps that are carried at once.
BATCH_ENTRIES = 2**21

Overlaps = Float[Array, "batch T T"]


class Above(NamedTuple):
    """What overlaps meet: every layer's description, passage and bends stacked, and the final norm's bend."""

    layered: Block
    passages: Passage
    bends: BlockBends
    final: Bend | None


class Layer(NamedTuple):
    """One layer of these, by its traced number."""

    number: Array
    block: Block
    passage: Passage
    bends: BlockBends


def exact_corrections(model: Transformer, above: Above) -> Rows:
    """The corrections of all layers at width 1, by row, ``(L,)``; all tangents summed up, in ``O(L² T⁵)``."""

    def of_head(here: Layer, source: HeadSource, factors: tuple[Array, Array]) -> Rows:
        queries, keys = factors
        unit = jnp.eye(queries.shape[-1], dtype=queries.dtype)

        def step(vectors: tuple[Array, Array]) -> Rows:
            key, column = vectors
            bias = source.of_bias(jnp.broadcast_to(column[None, :], unit.shape))
            overlaps = {
                "query": source.of_query(key)[None] * queries[:, None, :],
                "bias": bias[None] * unit[:, None, :],
                "rescale": source.share * source.whole[None] * column[None, None, :],
            }
            scores = _climbed_together(model, above, here, overlaps)
            return {name: jnp.sum(score) for name, score in scores.items()}

        return jax.tree.map(jnp.sum, lax.map(step, (keys, unit)))

    return _every_layer(model, above, of_head)


def sampled_corrections(model: Transformer, above: Above, key: Key[Array, ""], draws: int) -> tuple[Rows, Rows]:
    """The corrections of all layers at width 1 and their standard errors, from ``draws`` signed sums of tangents.

    Scalar parameters have one tangent each, and no error.
    """

    def of_head(here: Layer, source: HeadSource, factors: tuple[Array, Array]) -> Rows:
        queries, keys = factors
        length = queries.shape[-1]
        batch = max(1, min(draws, BATCH_ENTRIES // length**2))

        def some(number: Array) -> Rows:
            own = jax.random.split(jax.random.fold_in(jax.random.fold_in(key, here.number), number), 2)
            left, right, third = jax.random.rademacher(own[0], (3, batch, length), queries.dtype)
            fourth = jax.random.rademacher(own[1], (batch, length, length), queries.dtype)
            overlaps = {
                "query": source.of_query(full_product(left, keys)) * full_product(right, queries)[:, None, :],
                "bias": source.of_bias(fourth),
                "rescale": source.share * source.whole[None] * third[:, None, :],
            }
            return _climbed_together(model, above, here, overlaps)

        scores = lax.map(some, jnp.arange(-(-draws // batch)))
        return {name: score.reshape(-1)[:draws] for name, score in scores.items()}

    found = _every_layer(model, above, of_head)
    means = {name: jnp.mean(row, axis=1) if row.ndim == 2 else row for name, row in found.items()}
    return means, {name: jnp.std(row, axis=1, ddof=1) / draws**0.5 for name, row in found.items() if row.ndim == 2}


def _every_layer(
    model: Transformer, above: Above, of_head: Callable[[Layer, HeadSource, tuple[Array, Array]], Rows]
) -> Rows:
    """Per-head corrections averaged over heads, and those of scalars, with their gains, for every layer in turn."""

    def one_layer(number: Array) -> Rows:
        own = (_at(part, number) for part in (above.layered, above.passages, above.bends))
        layered, passage, bends = own
        here = Layer(number, model.block(layered), passage, bends)
        return _heads(here, of_head) | _scalars(model, above, here)

    return lax.map(one_layer, jnp.arange(model.depth))


def _heads(here: Layer, of_head: Callable[[Layer, HeadSource, tuple[Array, Array]], Rows]) -> Rows:
    """One of ``H`` heads moves an ``H``-th of the values, so that the square of its overlap counts an ``H``-th."""
    attention, gains = here.block.attention, here.block.gains
    inside = block.before(here.block.norm, here.passage.entered)
    factors = _factor(inside.join()), _factor(centre(inside)[0])

    def one_head(one: AttentionLayer) -> Rows:
        return of_head(here, head_source(one, inside), factors)

    weight = attention_weight(here.block) ** 2 / (attention.heads or 1)
    rows = {name: weight * row for name, row in mean_over_heads(one_head, attention).items()}
    if gains is not None:
        rows["query"] *= (gains.temperature * gains.key) ** 2
    return rows


def _scalars(model: Transformer, above: Above, here: Layer) -> Rows:
    """The corrections of parameters with one tangent each, those of both sublayers together."""
    first, second = at_attention_sum(here.block, here.passage), at_mlp_sum(here.block, here.passage)
    if not first:
        return {}
    overlaps, scores = through_rest(here.block, here.bends, jnp.stack(list(first.values())))
    if second:
        later, more = through_mlp_sum(here.bends, jnp.stack(list(second.values())))
        overlaps, scores = jnp.concatenate([overlaps, later]), jnp.concatenate([scores, more])
    scores += _above(model, above, here, overlaps)
    return dict(zip([*first, *second], scores, strict=True))


def _climbed_together(model: Transformer, above: Above, here: Layer, overlaps: dict[str, Overlaps]) -> Rows:
    """The second-order terms that overlaps at the attention's sum of a layer meet on their way to the loss."""
    batch, scores = through_rest(here.block, here.bends, jnp.concatenate(list(overlaps.values())))
    scores += _above(model, above, here, batch)
    ends = np.cumsum([len(overlap) for overlap in overlaps.values()])[:-1].tolist()
    return dict(zip(overlaps, jnp.split(scores, ends), strict=True))


def _above(model: Transformer, above: Above, here: Layer, overlaps: Overlaps) -> Float[Array, "batch"]:
    """The same of overlaps at a layer's output."""

    def climb(number: Array, state: tuple[Array, Array]) -> tuple[Array, Array]:
        overlaps, scores = state
        upper = model.block(_at(above.layered, number))
        overlaps, more = through_block(upper, _at(above.bends, number), overlaps)
        return overlaps, scores + more

    start = (overlaps, jnp.zeros_like(overlaps[:, 0, 0]))
    overlaps, scores = lax.fori_loop(here.number + 1, model.depth, climb, start)
    return scores if above.final is None else scores + above.final.second_order(overlaps)


def _factor(kernel: Float[Array, "T T"]) -> Float[Array, "T T"]:
    """Rows ``f_a`` with ``Σ_a f_a f_aᵀ = Σ``; eigenvalues below 0 are rounding and count as 0."""
    values, vectors = jnp.linalg.eigh(kernel)
    return (vectors * jnp.sqrt(jnp.maximum(values, 0.0))[None, :]).T


def _at(tree: Any, layer: Array) -> Any:
    return jax.tree.map(lambda leaf: lax.dynamic_index_in_dim(leaf, layer, keepdims=False), tree)
