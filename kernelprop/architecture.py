"""The description of a transformer: one object that every engine reads."""

from dataclasses import replace
from typing import Any

import equinox as eqx

from kernelprop import door
from kernelprop.attention.dense import dense
from kernelprop.attention.layer import AttentionLayer
from kernelprop.attention.stack import AttentionOperator, AttentionStack
from kernelprop.layers.block import Block
from kernelprop.layers.residual import Residual


class Transformer(eqx.Module):
    """A stack of blocks ``X → α₁X + β₁ A X W_V W_O``, ``L`` of them.

    The description is frozen and checked when it is made.

    Args:
        attention: an operator (`espa`, `uniform`, `dense`, …), or matrices as for `dense`.
        depth: the number of layers; the operator's own if it has one, else 1.
        residual: the weights of skips and branches; None is no residual, ``(0, 1)``.

    Raises:
        ValueError: where the parts' depths conflict.

    >>> import kernelprop as kp
    >>> kp.Transformer(kp.uniform(4), depth=3).depth
    3
    """

    attention: AttentionOperator
    depth: int = eqx.field(static=True)
    residual: Residual | None

    def __init__(self, attention: Any, depth: int | None = None, residual: Residual | None = None) -> None:
        operator = attention if isinstance(attention, AttentionLayer | AttentionStack) else dense(attention)
        self.attention = operator
        self.depth = _agreed_depth(operator.depth, depth)
        if residual is not None and not isinstance(residual, Residual):
            raise ValueError(f"residual: a kp.Residual is wanted, {residual!r} was given")
        self.residual = None if residual is None else residual.per_layer(self.depth)

    @property
    def length(self) -> int:
        """The number of positions ``T``."""
        return self.attention.length

    def layered(self) -> Block:
        """All blocks as one, its arrays with a leading layer axis: what a scan over depth runs along.

        An attention layer that all blocks share is left out.
        """
        operator = self.attention
        return Block(operator.layers if isinstance(operator, AttentionStack) else None, self.residual)

    def block(self, layer: Block) -> Block:
        """One layer's slice of `layered`, with the attention that all blocks share put back."""
        operator = self.attention
        return layer if isinstance(operator, AttentionStack) else replace(layer, attention=operator)


def _agreed_depth(own: int | None, asked: int | None) -> int:
    if asked is None:
        return own or 1
    door.count(asked, "depth")
    if own is not None and own != asked:
        raise ValueError(f"depth={asked} conflicts with the attention's {own} layers")
    return int(asked)
