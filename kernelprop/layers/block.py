"""One block of a transformer: its sublayers in sequence."""

from typing import Any

import equinox as eqx
from jaxtyping import Array

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


def forward(block: Block, kernel: SplitKernel, key: Array | None = None) -> SplitKernel:
    """Take the kernel through one block; ``key`` draws random attention."""
    if block.parallel:
        return _parallel(block, kernel, key)
    middle = _attention_sublayer(block, kernel, key)
    return middle if block.mlp is None else _mlp_sublayer(block, middle)


def _attention_sublayer(block: Block, kernel: SplitKernel, key: Array | None) -> SplitKernel:
    branch = _attention_branch(block, _before(block.norm, kernel), key)
    weights = None if block.residual is None else block.residual.attention
    return _after(block.norm, residual.forward(weights, kernel, branch))


def _mlp_sublayer(block: Block, kernel: SplitKernel) -> SplitKernel:
    branch = mlp.forward(block.mlp, _before(block.norm, kernel))
    weights = None if block.residual is None else block.residual.mlp
    return _after(block.norm, residual.forward(weights, kernel, branch))


def _parallel(block: Block, kernel: SplitKernel, key: Array | None) -> SplitKernel:
    inside = _before(block.norm, kernel)
    total = _attention_branch(block, inside, key)
    if block.residual is not None:
        total = residual.forward(block.residual.attention, kernel, total)
    if block.mlp is not None:
        branch = mlp.forward(block.mlp, inside)
        beta = None if block.residual is None else block.residual.mlp[1]
        total = total.plus(branch if beta is None else branch.scaled(beta**2))
    return _after(block.norm, total)


def _attention_branch(block: Block, kernel: SplitKernel, key: Array | None) -> SplitKernel:
    branch = attention.forward(block.attention, kernel, key)
    return branch if block.gains is None else branch.scaled((block.gains.value * block.gains.output) ** 2)


def _before(how: Norm | None, kernel: SplitKernel) -> SplitKernel:
    return norm.forward(how, kernel) if how is not None and how.place == "pre" else kernel


def _after(how: Norm | None, kernel: SplitKernel) -> SplitKernel:
    return norm.forward(how, kernel) if how is not None and how.place == "post" else kernel
