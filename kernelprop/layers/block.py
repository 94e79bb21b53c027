"""One block of a transformer: its sublayers in sequence."""

from collections.abc import Callable
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


class Maps(NamedTuple):
    """How the sublayers act on a kernel: whole, or on the rows of it that a device holds.

    ``norm(norm, kernel)``, ``attention(operator, kernel, key)`` and ``mlp(mlp, kernel)``.
    """

    norm: Callable[..., Any]
    attention: Callable[..., Any]
    mlp: Callable[..., Any]


WHOLE = Maps(norm.forward, attention.forward, mlp.forward)


class Passage(NamedTuple):
    """What the way back needs of the way through one block; the rest it computes again.

    ``entered`` is the kernel that enters, ``middle`` the one between the sublayers (None where there is none);
    ``attention_sum`` and ``mlp_sum`` the diagonals that norms behind the residual sums see (None without such).
    """

    entered: SplitKernel
    middle: SplitKernel | None
    attention_sum: Float[Array, "T"] | None
    mlp_sum: Float[Array, "T"] | None


def forward(block: Block, kernel: SplitKernel, key: Array | None = None, maps: Maps = WHOLE) -> SplitKernel:
    """Take the kernel through one block; ``key`` draws random attention."""
    return passage(block, kernel, key, maps)[0]


def passage(
    block: Block, kernel: SplitKernel, key: Array | None = None, maps: Maps = WHOLE
) -> tuple[SplitKernel, Passage]:
    """Take the kernel through one block, and keep what the way back needs."""
    if block.parallel:
        total = parallel_sum(block, kernel, key, maps)
        return after(block.norm, total, maps), Passage(kernel, None, _seen(block.norm, total), None)
    attended = attention_sum(block, kernel, key, maps)
    middle, seen = after(block.norm, attended, maps), _seen(block.norm, attended)
    if block.mlp is None:
        return middle, Passage(kernel, None, seen, None)
    total = mlp_sum(block, middle, maps)
    return after(block.norm, total, maps), Passage(kernel, middle, seen, _seen(block.norm, total))


def before(how: Norm | None, kernel: SplitKernel, maps: Maps = WHOLE) -> SplitKernel:
    """What enters a branch."""
    return maps.norm(how, kernel) if is_at(how, "pre") else kernel


def after(how: Norm | None, kernel: SplitKernel, maps: Maps = WHOLE) -> SplitKernel:
    """What a residual sum is handed on as."""
    return maps.norm(how, kernel) if is_at(how, "post") else kernel


def is_at(how: Norm | None, place: str) -> bool:
    """Whether the network normalises there."""
    return how is not None and how.place == place


def attention_sum(block: Block, kernel: SplitKernel, key: Array | None = None, maps: Maps = WHOLE) -> SplitKernel:
    """``αX + β Attn(N(X))``, in front of a norm behind it."""
    branch = attention_branch(block, before(block.norm, kernel, maps), key, maps)
    return residual.forward(None if block.residual is None else block.residual.attention, kernel, branch)


def mlp_sum(block: Block, kernel: SplitKernel, maps: Maps = WHOLE) -> SplitKernel:
    """``αZ + β MLP(N(Z))``, in front of a norm behind it."""
    branch = maps.mlp(block.mlp, before(block.norm, kernel, maps))
    return residual.forward(None if block.residual is None else block.residual.mlp, kernel, branch)


def parallel_sum(block: Block, kernel: SplitKernel, key: Array | None = None, maps: Maps = WHOLE) -> SplitKernel:
    """``α₁X + β₁ Attn(N(X)) + β₂ MLP(N(X))``, in front of a norm behind it."""
    inside = before(block.norm, kernel, maps)
    total = attention_branch(block, inside, key, maps)
    if block.residual is not None:
        total = residual.forward(block.residual.attention, kernel, total)
    if block.mlp is not None:
        branch = maps.mlp(block.mlp, inside)
        beta = None if block.residual is None else block.residual.mlp[1]
        total = total.plus(branch if beta is None else branch.scaled(beta**2))
    return total


def attention_branch(block: Block, kernel: SplitKernel, key: Array | None = None, maps: Maps = WHOLE) -> SplitKernel:
    """``σ_V² σ_O² mean_h A_h Σ A_hᵀ`` of what enters the branch."""
    branch = maps.attention(with_gains(block.attention, block.gains), kernel, key)
    return branch if block.gains is None else branch.scaled((block.gains.value * block.gains.output) ** 2)


def with_gains(operator: Any, gains: Gains | None) -> Any:
    """The attention with what gains of queries and keys and a temperature do to its logits, if these are random."""
    if gains is None or not isinstance(operator, RandomSoftmax):
        return operator
    return operator.scaled_logits(gains.temperature * gains.query * gains.key)


def _seen(how: Norm | None, kernel: SplitKernel) -> Float[Array, "T"] | None:
    return kernel.diagonal() if is_at(how, "post") else None
