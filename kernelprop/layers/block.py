"""One block of a transformer: its sublayers in sequence."""

from typing import Any, NamedTuple

import equinox as eqx
from jaxtyping import Array, Float

from kernelprop.attention.random_softmax import RandomSoftmax
from kernelprop.layers import attention, mlp, norm, residual
from kernelprop.layers.gains import Gains
from kernelprop.layers.norm import Norm
from kernelprop.layers.residual import Residual
from kernelprop.split_kernel import SplitKernel


class Block(eqx.Module):
    """One layer; with a leading axis on its arrays, all of them.

    ``Z = α₁X + β₁ Attn(N(X))``, ``X' = α₂Z + β₂ MLP(N(Z))``, ``N`` in front of the branches or, post, behind the sums;
    parallel: ``X' = α₁X + β₁ Attn(N(X)) + β₂ MLP(N(X))``.
    """

    attention: Any
    mlp: Any
    residual: Residual | None
    gains: Gains | None
    norm: Norm | None
    parallel: bool = eqx.field(static=True)


class Passage(NamedTuple):
    """What the way back needs of the way through one block; the rest it computes again.

    ``entered`` is the kernel that enters, ``middle`` the one between the sublayers (None where there is none);
    ``attention_sum`` and ``mlp_sum`` the diagonals that norms behind the residual sums see (None without such).
    """

    entered: SplitKernel
    middle: SplitKernel | None
    attention_sum: Float[Array, "T"] | None
    mlp_sum: Float[Array, "T"] | None


def forward(block: Block, kernel: SplitKernel, key: Array | None = None) -> SplitKernel:
    """Take the kernel through one block; ``key`` draws random attention."""
    return passage(block, kernel, key)[0]


def passage(block: Block, kernel: SplitKernel, key: Array | None = None) -> tuple[SplitKernel, Passage]:
    """Take the kernel through one block, and keep what the way back needs."""
    if block.parallel:
        total = parallel_sum(block, kernel, key)
        return after(block.norm, total), Passage(kernel, None, _seen(block.norm, total), None)
    attended = attention_sum(block, kernel, key)
    middle, seen = after(block.norm, attended), _seen(block.norm, attended)
    if block.mlp is None:
        return middle, Passage(kernel, None, seen, None)
    total = mlp_sum(block, middle)
    return after(block.norm, total), Passage(kernel, middle, seen, _seen(block.norm, total))


def before(how: Norm | None, kernel: SplitKernel) -> SplitKernel:
    """What enters a branch."""
    return norm.forward(how, kernel) if how is not None and is_at(how, "pre") else kernel


def after(how: Norm | None, kernel: SplitKernel) -> SplitKernel:
    """What a residual sum is handed on as."""
    return norm.forward(how, kernel) if how is not None and is_at(how, "post") else kernel


def is_at(how: Norm | None, place: str) -> bool:
    """Whether the network normalises there."""
    return how is not None and how.place == place


def attention_sum(block: Block, kernel: SplitKernel, key: Array | None = None) -> SplitKernel:
    """``αX + β Attn(N(X))``, in front of a norm behind it."""
    branch = attention_branch(block, before(block.norm, kernel), key)
    return residual.forward(None if block.residual is None else block.residual.attention, kernel, branch)


def mlp_sum(block: Block, kernel: SplitKernel) -> SplitKernel:
    """``αZ + β MLP(N(Z))``, in front of a norm behind it."""
    branch = mlp.forward(block.mlp, before(block.norm, kernel))
    return residual.forward(None if block.residual is None else block.residual.mlp, kernel, branch)


def parallel_sum(block: Block, kernel: SplitKernel, key: Array | None = None) -> SplitKernel:
    """``α₁X + β₁ Attn(N(X)) + β₂ MLP(N(X))``, in front of a norm behind it."""
    inside = before(block.norm, kernel)
    total = attention_branch(block, inside, key)
    if block.residual is not None:
        total = residual.forward(block.residual.attention, kernel, total)
    if block.mlp is not None:
        branch = mlp.forward(block.mlp, inside)
        beta = None if block.residual is None else block.residual.mlp[1]
        total = total.plus(branch if beta is None else branch.scaled(beta**2))
    return total


def attention_branch(block: Block, kernel: SplitKernel, key: Array | None = None) -> SplitKernel:
    """``σ_V² σ_O² mean_h A_h Σ A_hᵀ`` of what enters the branch."""
    branch = attention.forward(with_gains(block.attention, block.gains), kernel, key)
    return branch if block.gains is None else branch.scaled((block.gains.value * block.gains.output) ** 2)


def with_gains(operator: Any, gains: Gains | None) -> Any:
    """The attention with what gains of queries and keys and a temperature do to its logits, if these are random."""
    if gains is None or not isinstance(operator, RandomSoftmax):
        return operator
    return operator.scaled_logits(gains.temperature * gains.query * gains.key)


def _seen(how: Norm | None, kernel: SplitKernel) -> Float[Array, "T"] | None:
    return kernel.diagonal() if is_at(how, "post") else None
