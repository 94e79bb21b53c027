"""One block backward: the cotangent kernel through its sublayers, with the gradient norms of its trainables."""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from kernelprop.layers import attention, mlp, norm
from kernelprop.layers.block import Block, Passage, before, is_at
from kernelprop.layers.norm import Norm
from kernelprop.layers.pairing import pairing
from kernelprop.layers.residual import Weights
from kernelprop.layers.score_gradients import Rows
from kernelprop.split_kernel import SplitKernel


class Cotangents(NamedTuple):
    """The cotangent kernels inside one sublayer.

    ``above`` at its output; ``summed`` at the residual sum, in front of a norm behind it; ``inside`` at the input of
    the branches, behind a norm in front of them.
    """

    above: Float[Array, "T T"]
    summed: Float[Array, "T T"]
    inside: Float[Array, "T T"]


Branch = Callable[[SplitKernel, Float[Array, "T T"]], tuple[Float[Array, "T T"], Rows]]


def backward(
    block: Block, passage: Passage, cotangent: Float[Array, "T T"], key: Array | None = None
) -> tuple[Float[Array, "T T"], Rows, dict[str, Cotangents]]:
    """Take the cotangent kernel from a block's output to its input (theory: backward recursion).

    Args:
        block: the layer.
        passage: what the way through kept.
        cotangent: at the output, ``(T, T)``.
        key: the one that drew the way through.

    Returns:
        The cotangent kernel at the input, the gradient norms at width 1 by name, and the cotangents inside the
        sublayers ``"attention"`` and ``"mlp"`` (parallel: one, ``"attention"``).
    """

    def attend(inside: SplitKernel, pulled: Array) -> tuple[Array, Rows]:
        return attention.backward(block.attention, block.gains, inside, pulled, key)

    def think(inside: SplitKernel, pulled: Array) -> tuple[Array, Rows]:
        return mlp.backward(block.mlp, inside, pulled)

    weights = (None, None) if block.residual is None else (block.residual.attention, block.residual.mlp)
    if block.parallel:
        branches = {"attention": (attend, weights[0])} | ({} if block.mlp is None else {"mlp": (think, weights[1])})
        below, rows, within = _sublayer(branches, block.norm, passage.entered, passage.attention_sum, cotangent)
        return below, rows, {"attention": within}
    rows, inner = {}, {}
    if block.mlp is not None:
        assert passage.middle is not None
        branches = {"mlp": (think, weights[1])}
        cotangent, rows, inner["mlp"] = _sublayer(branches, block.norm, passage.middle, passage.mlp_sum, cotangent)
    branches = {"attention": (attend, weights[0])}
    below, own, inner["attention"] = _sublayer(branches, block.norm, passage.entered, passage.attention_sum, cotangent)
    return below, rows | own, inner


def _sublayer(
    branches: dict[str, tuple[Branch, Weights | None]],
    how: Norm | None,
    kernel: SplitKernel,
    seen: Float[Array, "T"] | None,
    above: Float[Array, "T T"],
) -> tuple[Float[Array, "T T"], Rows, Cotangents]:
    """Back through ``N(αX + Σ β f(X))`` or ``αX + Σ β f(N(X))``; the skip's ``α`` is the first branch's.

    Rows are linear in the cotangent, so that a branch's are those of the unweighted sum times ``β²``.
    """
    first = next(iter(branches))
    cotangent = above if how is None or seen is None else norm.backward(how, seen, above)
    inside = before(how, kernel)
    total, rows, summed = jnp.zeros_like(cotangent), {}, jnp.zeros_like(kernel.common)
    for name, (branch, weights) in branches.items():
        pulled, own = branch(inside, cotangent)
        through = own.pop("branch")
        beta2 = jnp.ones_like(through) if weights is None else weights[1] ** 2
        rows |= {key: beta2 * row for key, row in own.items()}
        total += beta2 * pulled
        summed += beta2 * through
        if weights is not None:
            rows[f"{name}_beta"] = through
    within = Cotangents(above, cotangent, total)
    if how is not None and is_at(how, "pre"):
        rows[f"{first}_norm"] = pairing(total, inside)
        total = norm.backward(how, kernel.diagonal(), total)
    weights = branches[first][1]
    if weights is not None:
        rows[f"{first}_alpha"] = pairing(cotangent, kernel)
        total += weights[0] ** 2 * cotangent
        summed += weights[0] ** 2 * rows[f"{first}_alpha"]
    if is_at(how, "post"):
        # The norm's output against its own cotangent: the two factors of the norm cancel.
        rows[f"{first}_norm"] = summed
    return total, rows, within
