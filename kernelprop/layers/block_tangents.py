"""Overlaps of tangents through one block: what an exact query row needs of the layers above.

An overlap ``X_ij = ⟨z_i, ẏ_j⟩/d`` passes attention as a kernel does, ``α²X + β² σ_V² σ_O² mean_h A_h X A_hᵀ``, and
norms and MLPs as `bends` says; at each of these it leaves a second-order term, paired with the cotangent kernel behind.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from kernelprop.attention.layer import AttentionLayer
from kernelprop.layers.attention import mean_over_heads
from kernelprop.layers.bends import Bend, bend
from kernelprop.layers.block import Block, Passage, attention_sum, is_at, mlp_sum, parallel_sum
from kernelprop.layers.block_gradients import Cotangents
from kernelprop.layers.norm import Norm
from kernelprop.layers.norm import forward as normalised
from kernelprop.layers.residual import Weights
from kernelprop.split_kernel import SplitKernel

Overlaps = Float[Array, "batch T T"]
Scores = Float[Array, "batch"]


class SublayerBends(NamedTuple):
    """The nonlinear maps of one sublayer, each weighed with the cotangent kernel behind it; None where there is none.

    ``front`` is the norm in front of the branches, ``branch`` the MLP, ``behind`` the norm behind the residual sum.
    """

    front: Bend | None
    branch: Bend | None
    behind: Bend | None


class BlockBends(NamedTuple):
    """Those of a block; parallel branches are one sublayer."""

    attention: SublayerBends
    mlp: SublayerBends | None


def block_bends(block: Block, passage: Passage, inner: dict[str, Cotangents]) -> BlockBends:
    """The bends of a block at the kernels of its passage, with the cotangents inside it.

    Raises:
        ValueError: for a layer without a second-order map.
    """
    summed = parallel_sum if block.parallel else attention_sum
    behind = summed(block, passage.entered) if is_at(block.norm, "post") else None
    mlp = block.mlp if block.parallel else None
    attention = _sublayer_bends(block, mlp, passage.entered, behind, inner["attention"])
    if passage.middle is None:
        return BlockBends(attention, None)
    behind = mlp_sum(block, passage.middle) if is_at(block.norm, "post") else None
    return BlockBends(attention, _sublayer_bends(block, block.mlp, passage.middle, behind, inner["mlp"]))


def through_block(block: Block, bends: BlockBends, overlaps: Overlaps) -> tuple[Overlaps, Scores]:
    """Take overlaps at the block's input to its output, with the second-order terms met on the way."""
    score = jnp.zeros_like(overlaps[:, 0, 0])
    inside = overlaps
    front, branch, _ = bends.attention
    if front is not None:
        score, inside = front.second_order(overlaps), front.transport(overlaps)
    attended = _attended(block, inside)
    skip, weight = _squares(None if block.residual is None else block.residual.attention)
    total = weight * attended if skip is None else skip * overlaps + weight * attended
    if branch is not None:
        _, weight = _squares(None if block.residual is None else block.residual.mlp)
        score += branch.second_order(inside)
        total += weight * branch.transport(inside)
    after, more = through_rest(block, bends, total)
    return after, score + more


def through_rest(block: Block, bends: BlockBends, overlaps: Overlaps) -> tuple[Overlaps, Scores]:
    """Take overlaps at the attention's residual sum to the block's output."""
    score = jnp.zeros_like(overlaps[:, 0, 0])
    overlaps, score = _behind(bends.attention.behind, overlaps, score)
    if bends.mlp is None:
        return overlaps, score
    inside = overlaps
    front, branch, behind = bends.mlp
    if front is not None:
        score += front.second_order(overlaps)
        inside = front.transport(overlaps)
    assert branch is not None
    score += branch.second_order(inside)
    skip, weight = _squares(None if block.residual is None else block.residual.mlp)
    total = weight * branch.transport(inside)
    return _behind(behind, total if skip is None else skip * overlaps + total, score)


def through_mlp_sum(bends: BlockBends, overlaps: Overlaps) -> tuple[Overlaps, Scores]:
    """Take overlaps at the MLP's residual sum to the block's output."""
    assert bends.mlp is not None
    return _behind(bends.mlp.behind, overlaps, jnp.zeros_like(overlaps[:, 0, 0]))


def final_bend(norm: Norm, kernel: SplitKernel, cotangent: Float[Array, "T T"]) -> Bend:
    """The final norm's, weighed with the loss's cotangent."""
    return bend(norm, kernel).weighed(cotangent)


def _sublayer_bends(
    block: Block, mlp: object, kernel: SplitKernel, summed: SplitKernel | None, inner: Cotangents
) -> SublayerBends:
    how = block.norm
    inside, front, behind, branch = kernel, None, None, None
    if how is not None and is_at(how, "pre"):
        inside, front = normalised(how, kernel), bend(how, kernel).weighed(inner.inside)
    if how is not None and summed is not None:
        behind = bend(how, summed).weighed(inner.above)
    if mlp is not None:
        _, weight = _squares(None if block.residual is None else block.residual.mlp)
        branch = bend(mlp, inside).weighed(weight * inner.summed)
    return SublayerBends(front, branch, behind)


def _behind(behind: Bend | None, overlaps: Overlaps, score: Scores) -> tuple[Overlaps, Scores]:
    if behind is None:
        return overlaps, score
    return behind.transport(overlaps), score + behind.second_order(overlaps)


def _attended(block: Block, overlaps: Overlaps) -> Overlaps:
    """``σ_V² σ_O² mean_h A_h X A_hᵀ`` of every overlap."""

    def one_head(one: AttentionLayer) -> Array:
        return jnp.swapaxes(one.act(jnp.swapaxes(one.act(overlaps), -1, -2)), -1, -2)

    total = mean_over_heads(one_head, block.attention)
    return total if block.gains is None else (block.gains.value * block.gains.output) ** 2 * total


def _squares(weights: Weights | None) -> tuple[Array | None, Array | float]:
    """``α²`` and ``β²``; no skip and 1 without a residual."""
    return (None, 1.0) if weights is None else (weights[0] ** 2, weights[1] ** 2)
