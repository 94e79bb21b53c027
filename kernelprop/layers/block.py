"""One block of a transformer: its sublayers in sequence."""

import equinox as eqx

from kernelprop.attention.layer import AttentionLayer
from kernelprop.layers import attention, residual
from kernelprop.layers.residual import Residual
from kernelprop.split_kernel import SplitKernel


class Block(eqx.Module):
    """``Z = α₁X + β₁ A X W_V W_O``: one layer, or, with a leading axis on its arrays, all of them."""

    attention: AttentionLayer | None
    residual: Residual | None


def forward(block: Block, kernel: SplitKernel) -> SplitKernel:
    """Take the kernel through one block."""
    if block.attention is None:
        raise ValueError("this block is a slice without the attention that all blocks share")
    branch = attention.forward(block.attention, kernel)
    if block.residual is None:
        return branch
    return residual.forward(block.residual.attention, kernel, branch)
