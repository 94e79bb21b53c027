"""Where tangents start: the overlap ``⟨z_i, ẏ_j⟩/d`` that moving a parameter gives a residual sum, at width 1.

Attention moves the values ``v`` of its heads, ``ẏ = βNv``, and the sum holds them as ``βAv``: the overlap is
``β² σ_V² σ_O² AΣNᵀ``. Parameters of every head's own are summed over: one of ``H`` heads has an ``H``-th of the values.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from kernelprop.attention.layer import AttentionLayer
from kernelprop.attention.softmax_part import entries, has_value_skip, softmax_part
from kernelprop.layers import block, mlp
from kernelprop.layers.attention import mean_over_heads
from kernelprop.layers.block import Block, Passage
from kernelprop.layers.score_gradients import centre, chooses
from kernelprop.split_kernel import SplitKernel

Matrix = Float[Array, "T T"]
Overlaps = Float[Array, "batch T T"]


class HeadSource(NamedTuple):
    """One head: the softmax operator ``DP`` and what its tangents are made of.

    ``differences = AΣ`` up to a number a row, which rows of ``N`` that sum to 0 don't feel; ``attended = AΣPᵀ`` up to
    the same; ``whole = AΣPᵀ``; ``share`` as in `softmax_part`; ``choice`` as in `chooses`: other rows of ``N`` are 0.
    """

    share: Array | float
    base: AttentionLayer
    matrix: Matrix
    rescale: Float[Array, "T"]
    differences: Matrix
    attended: Matrix
    whole: Matrix
    choice: Bool[Array, "T"]

    def of_query(self, keys: Float[Array, "*batch T"]) -> Float[Array, "*batch T T"]:
        """``AΣMᵀ`` with ``M = share · D (P diag(κ) − diag(Pκ) P)``; times ``ξ`` along columns, one entry's."""
        attended_keys = self.base.act(keys) / self._across(keys.ndim)
        columns, means = keys[..., None, :], attended_keys[..., None, :]
        shape = (1,) * (keys.ndim - 1) + self.differences.shape
        differences, attended = self.differences.reshape(shape), self.attended.reshape(shape)
        rescale = self.rescale.reshape((1,) * keys.ndim + (-1,))
        return self._moved(self.base.act(differences * columns) - rescale * attended * means)

    def of_bias(self, weights: Float[Array, "*batch T T"]) -> Float[Array, "*batch T T"]:
        """``AΣNᵀ`` with ``N_ij = share · D_i P_ij (ω_ij − Σ_k P_ik ω_ik)``: a move ``ω`` of the bias."""
        shape = (1,) * (weights.ndim - 2) + self.matrix.shape
        moved = self.matrix.reshape(shape) * weights
        differences = jnp.broadcast_to(self.differences.reshape(shape), weights.shape)
        total = jnp.matmul(differences, jnp.swapaxes(moved, -1, -2), precision="highest")
        return self._moved(total - self.attended.reshape(shape) * jnp.sum(moved, axis=-1)[..., None, :])

    def _moved(self, overlaps: Overlaps) -> Overlaps:
        """The head's share of what the rows with a choice move; the others' differences are rounding."""
        choice = self.choice.reshape((1,) * (overlaps.ndim - 1) + (-1,))
        return self.share * jnp.where(choice, overlaps, jnp.zeros_like(overlaps))

    def _across(self, ndim: int) -> Array:
        return self.rescale.reshape((1,) * (ndim - 1) + (-1,))


def head_source(one: AttentionLayer, kernel: SplitKernel) -> HeadSource:
    """Prepare one headless layer at the kernel that enters the branch."""
    share, base = softmax_part(one)
    matrix = entries(base, kernel.rest.dtype)
    rescale = jnp.sum(matrix, axis=1)
    softmax = jnp.all(matrix >= 0) & jnp.all(rescale > 0)
    rescale = jnp.where(softmax, rescale, jnp.ones_like(rescale))
    centred, edge = centre(kernel)
    row_sums, middle = one.act(jnp.ones_like(rescale)), jnp.mean(edge)
    differences = one.act(centred).T + row_sums[:, None] * (edge - middle)[None, :]
    attended = base.act(differences) / rescale[None, :]
    whole = attended + (one.act(edge) + row_sums * middle)[:, None]
    return HeadSource(share, base, matrix, rescale, differences, attended, whole, chooses(matrix))


def attention_weight(here: Block) -> Array | float:
    """``β² σ_V² σ_O²``."""
    weight = 1.0 if here.residual is None else here.residual.attention[1] ** 2
    return weight if here.gains is None else weight * (here.gains.value * here.gains.output) ** 2


def at_attention_sum(here: Block, passage: Passage) -> dict[str, Matrix]:
    """The overlaps of scalar parameters at the attention's residual sum (parallel: at the only one)."""
    inside = block.before(here.norm, passage.entered)
    found = _mix(here, inside) if has_value_skip(here.attention) else {}
    if here.residual is not None:
        alpha, beta = here.residual.attention
        found["attention_alpha"] = alpha * passage.entered.join()
        found["attention_beta"] = beta * block.attention_branch(here, inside).join()
        if here.parallel and here.mlp is not None:
            found["mlp_beta"] = here.residual.mlp[1] * mlp.forward(here.mlp, inside).join()
    return found


def at_mlp_sum(here: Block, passage: Passage) -> dict[str, Matrix]:
    """The same at the MLP's residual sum."""
    if here.residual is None or passage.middle is None:
        return {}
    alpha, beta = here.residual.mlp
    branch = mlp.forward(here.mlp, block.before(here.norm, passage.middle))
    return {"mlp_alpha": alpha * passage.middle.join(), "mlp_beta": beta * branch.join()}


def _mix(here: Block, inside: SplitKernel) -> dict[str, Matrix]:
    """``α`` moves the values themselves, ``β`` those that the softmax attends to; all heads at once."""
    weight = attention_weight(here)

    def skip(one: AttentionLayer) -> Matrix:
        return one.act(inside.join()).T

    def attended(one: AttentionLayer) -> Matrix:
        source = head_source(one, inside)
        return source.whole * source.rescale[None, :]

    return {
        "mix_alpha": weight * mean_over_heads(skip, here.attention),
        "mix_beta": weight * mean_over_heads(attended, here.attention),
    }
