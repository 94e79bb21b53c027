"""The sizes of a finite network: width, heads and their width, checked against the description."""

from typing import Any, NamedTuple

from kernelprop import door
from kernelprop.architecture import Transformer
from kernelprop.finite.families import Shape
from kernelprop.finite.patterns import PlainPattern


class Sizes(NamedTuple):
    """Positions ``T``, layers ``L``, width ``d``, heads ``H`` of width ``d_k``."""

    length: int
    depth: int
    width: int
    heads: int
    head_width: int

    def attention_shapes(self, with_queries: bool) -> dict[str, Shape]:
        """``W_Q, W_K, W_V (d, H d_k)`` and ``W_O (H d_k, d)``."""
        inward = Shape(self.width, self.heads * self.head_width, self.heads)
        names = ("query", "key", "value") if with_queries else ("value",)
        return {**dict.fromkeys(names, inward), "output": Shape(inward.fan_out, self.width)}


def network_sizes(model: Transformer, width: Any, heads: Any, head_width: Any, attention: Any) -> Sizes:
    """Check the sizes that a user asks for.

    ``heads=None`` takes the attention's, 1 if it has none. Heads with matrices of their own may be repeated: ``H``
    heads for ``H'`` matrices, ``H`` a multiple of ``H'``, take them in turn.

    Raises:
        ValueError: where the heads don't divide the width, the matrices don't divide the heads, or rotary
            frequencies don't fit the head width.
    """
    width = door.count(width, "width")
    own = attention.heads or 1
    heads = own if heads is None else door.count(heads, "heads")
    if heads % own:
        raise ValueError(f"heads: {heads} is no multiple of the {own} heads that the attention has")
    if head_width is None:
        if width % heads:
            raise ValueError(f"width: {width} does not divide into {heads} heads; give head_width")
        head_width = width // heads
    head_width = door.count(head_width, "head_width")
    _rotary_fits(attention.pattern, head_width)
    return Sizes(model.length, model.depth, width, heads, head_width)


def _rotary_fits(pattern: Any, head_width: int) -> None:
    if isinstance(pattern, PlainPattern) or pattern.frequencies is None:
        return
    wanted = 2 * len(pattern.frequencies)
    if head_width % wanted:
        raise ValueError(
            f"head_width: {head_width} is no multiple of {wanted}, the features that "
            f"{wanted // 2} rotary frequencies turn"
        )
