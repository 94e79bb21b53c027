"""The description of a transformer: one object that every engine reads."""

from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from kernelprop import door, trust
from kernelprop.attention.dense import dense
from kernelprop.attention.stack import AttentionStack
from kernelprop.layers.block import Block
from kernelprop.layers.gains import Gains
from kernelprop.layers.norm import Norm
from kernelprop.layers.residual import Residual

# What people ask for and this toolkit can't describe, with what to do instead.
UNSUPPORTED = {
    "cross_attention": "describe the decoder's self-attention alone",
    "dropout": "it is not modelled, a network is described in evaluation mode: leave it out",
    "experts": "mixtures of experts have no kernel map here",
    "mixture_of_experts": "mixtures of experts have no kernel map here",
    "convolution": "convolutions have no kernel map here",
    "recurrence": "recurrent layers have no kernel map here",
    "weight_sharing": "shared weights correlate the layers, which the recursion takes as independent",
}


class Transformer(eqx.Module):
    """A stack of ``L`` blocks ``Z = α₁X + β₁ Attn(N(X))``, ``X' = α₂Z + β₂ MLP(N(Z))``.

    The description is frozen and checked when it is made.

    Args:
        attention: an operator (`espa`, `uniform`, `dense`, `random_softmax`, …), or matrices as for `dense`.
        depth: the number of layers; the operator's own if it has one, else 1.
        mlp: an `MLP` or `GatedMLP`; None is no MLP sublayer, ``X' = Z``.
        residual: the weights of skips and branches; None is no residual, ``(0, 1)``.
        norm: a `Norm`, or its place, ``"pre"`` or ``"post"``; None is no normalisation.
        gains: the `Gains` of the attention's weights and its temperature; all 1 by default.
        positions: a kernel ``(T, T)`` that positional embeddings add to the input kernel, or None.
        parallel: whether attention and MLP read the same input: ``X' = α₁X + β₁ Attn(N(X)) + β₂ MLP(N(X))``.

    Raises:
        ValueError: where the parts' depths or lengths conflict, and for what isn't supported, by name.

    >>> import kernelprop as kp
    >>> kp.Transformer(kp.uniform(4), depth=3, mlp=kp.MLP("relu"), norm="pre").depth
    3
    """

    attention: Any
    depth: int = eqx.field(static=True)
    mlp: Any
    residual: Residual | None
    norm: Norm | None
    gains: Gains | None
    positions: Float[Any, "T T"] | None
    parallel: bool = eqx.field(static=True)

    def __init__(
        self,
        attention: Any,
        depth: int | None = None,
        mlp: Any = None,
        residual: Residual | None = None,
        norm: Any = None,
        *,
        gains: Gains | None = None,
        positions: Any = None,
        parallel: bool = False,
        **unsupported: Any,
    ) -> None:
        _refuse(unsupported)
        self.attention = attention if hasattr(attention, "length") else dense(attention)
        self.depth = _agreed_depth(self.attention.depth, depth)
        self.mlp = _spread(mlp, self.depth, "mlp", "kp.MLP or kp.GatedMLP")
        self.residual = _spread(residual, self.depth, "residual", "kp.Residual")
        self.gains = _spread(gains, self.depth, "gains", "kp.Gains")
        self.norm = Norm(norm) if isinstance(norm, str) else norm
        if not (self.norm is None or isinstance(self.norm, Norm)):
            raise ValueError(f"norm: a kp.Norm, 'pre', 'post' or None is wanted, {norm!r} was given")
        self.positions = _positions(positions, self.attention.length)
        self.parallel = bool(parallel)

    @property
    def length(self) -> int:
        """The number of positions ``T``."""
        return self.attention.length

    def replaced(self, **parts: Any) -> "Transformer":
        """The same network with some parts changed, by the names of the arguments; checked as a new one is.

        Raises:
            ValueError: as for a new `Transformer`, and for a name that is none of its parts.

        >>> import kernelprop as kp
        >>> kp.Transformer(kp.uniform(4), depth=3, norm="pre").replaced(norm="post").norm.place
        'post'
        """
        return replace(self, **parts)

    def layered(self) -> Block:
        """All blocks as one, its arrays with a leading layer axis: what a scan over depth runs along.

        An attention layer that all blocks share is left out, and so is what has no layer axis.
        """
        operator = self.attention
        own = operator.layers if isinstance(operator, AttentionStack) else None
        mlp = self.mlp
        if mlp is not None:
            # An activation's own numbers are shared by all layers: a view of them for each.
            own_numbers = jax.tree.map(
                lambda leaf: jnp.broadcast_to(leaf, (self.depth, *jnp.shape(leaf))), mlp.activation
            )
            mlp = eqx.tree_at(lambda one: one.activation, mlp, own_numbers, is_leaf=lambda leaf: leaf is None)
        return Block(own, mlp, self.residual, self.gains, self.norm, self.parallel)

    def block(self, layer: Block) -> Block:
        """One layer's slice of `layered`, with the attention that all blocks share put back."""
        operator = self.attention
        return layer if isinstance(operator, AttentionStack) else replace(layer, attention=operator)


def _spread(part: Any, depth: int, name: str, wanted: str) -> Any:
    if part is None:
        return None
    if not hasattr(part, "per_layer"):
        raise ValueError(f"{name}: a {wanted} is wanted, {part!r} was given")
    return part.per_layer(depth)


def _positions(kernel: Any, length: int) -> np.ndarray | None:
    if kernel is None:
        return None
    checked = kernel if trust.is_certified(kernel) else door.kernel(kernel, "positions")
    if checked.shape != (length, length):
        raise ValueError(f"positions: shape {checked.shape} does not fit {length} positions")
    return checked.astype(np.float64)


def _refuse(unsupported: dict[str, Any]) -> None:
    for name in unsupported:
        advice = UNSUPPORTED.get(name, "see the docstring of kp.Transformer for what is")
        raise ValueError(f"{name} is not supported: {advice}")


def _agreed_depth(own: int | None, asked: int | None) -> int:
    if asked is None:
        return own or 1
    door.count(asked, "depth")
    if own is not None and own != asked:
        raise ValueError(f"depth={asked} conflicts with the attention's {own} layers")
    return int(asked)
