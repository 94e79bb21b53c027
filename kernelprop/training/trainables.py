"""What of a description is trained beside its weights: read off the finite network, and put back into it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from kernelprop.finite.network import Network
from kernelprop.finite.patterns import PlainPattern, SoftmaxPattern
from kernelprop.layers.block import Block
from kernelprop.layers.residual import Residual

# What a user asks for, and the arrays behind it.
GROUPS: dict[str, tuple[str, ...]] = {
    "bias": ("bias",),
    "rescale": ("rescale",),
    "mix": ("mix_alpha", "mix_beta"),
    "skip": ("attention_alpha", "mlp_alpha"),
    "branch": ("attention_beta", "mlp_beta"),
}
OF_ATTENTION = ("bias", "rescale", "mix_alpha", "mix_beta")

# Where in the stack of blocks each array is.
_PLACES: dict[str, Any] = {
    "bias": lambda block: block.attention.bias,
    "rescale": lambda block: block.attention.rescale,
    "mix_alpha": lambda block: block.attention.identity,
    "mix_beta": lambda block: block.attention.softmax,
    "attention_alpha": lambda block: block.residual.attention[0],
    "attention_beta": lambda block: block.residual.attention[1],
    "mlp_alpha": lambda block: block.residual.mlp[0],
    "mlp_beta": lambda block: block.residual.mlp[1],
}


def default_groups(net: Network) -> tuple[str, ...]:
    """``("mix",)`` for attention with a skip of its values, which else would never leave it; nothing for others."""
    pattern = net.shared if net.shared is not None else net.blocks.attention
    if isinstance(pattern, PlainPattern):
        return ()
    mixed = np.any(np.asarray(pattern.identity) != 0) or np.any(np.asarray(pattern.softmax) != 1)
    return ("mix",) if mixed else ()


def trained_names(net: Network, groups: Sequence[str]) -> tuple[str, ...]:
    """The arrays that these groups name in a network.

    Raises:
        ValueError: for an unknown group, and for what the network has not.
    """
    for group in groups:
        if group not in GROUPS:
            raise ValueError(f"trainable: {group!r} is unknown; use {', '.join(GROUPS)}")
    names = [name for group in GROUPS for name in GROUPS[group] if group in groups]
    pattern = net.shared if net.shared is not None else net.blocks.attention
    if isinstance(pattern, PlainPattern) and any(name in OF_ATTENTION for name in names):
        wanted = next(group for group in groups if GROUPS[group][0] in OF_ATTENTION)
        raise ValueError(f"trainable: {wanted!r}: no softmax makes this attention, so that it has none")
    if net.blocks.mlp is None:
        names = [name for name in names if not name.startswith("mlp_")]
    if net.blocks.parallel:  # one skip for both branches
        names = [name for name in names if name != "mlp_alpha"]
    return tuple(names)


def prepared(net: Network, names: Sequence[str]) -> Network:
    """The same network with an array of its own, with a leading layer axis, behind every one of these names."""
    if any(name in OF_ATTENTION for name in names):
        net = _with_own_attention(net)
    if any(name not in OF_ATTENTION for name in names) and net.blocks.residual is None:
        none = Residual().per_layer(net.sizes.depth)
        net = replace(net, blocks=replace(net.blocks, residual=none))
    return net


def read(net: Network, names: Sequence[str]) -> dict[str, Array]:
    """These arrays of a prepared network."""
    return {name: jnp.asarray(_PLACES[name](net.blocks)) for name in names}


def placed(net: Network, values: Mapping[str, Array]) -> Network:
    """A prepared network with other values."""
    blocks: Block = net.blocks
    for name, value in values.items():
        blocks = eqx.tree_at(_PLACES[name], blocks, value)
    return replace(net, blocks=blocks)


def _with_own_attention(net: Network) -> Network:
    """Every layer its own pattern, with a bias for every row and a rescale."""
    sizes = net.sizes
    pattern = net.shared
    if pattern is None:
        pattern = net.blocks.attention
    else:
        pattern = jax.tree.map(lambda leaf: np.broadcast_to(leaf, (sizes.depth, *np.shape(leaf))), pattern)
    assert isinstance(pattern, SoftmaxPattern)
    square = (*pattern.bias.shape[:-2], sizes.length, sizes.length)
    rescale = pattern.rescale
    if rescale is None:
        rescale = np.ones((sizes.depth, sizes.length), np.asarray(pattern.bias).dtype)
    own = replace(
        pattern,
        bias=np.broadcast_to(pattern.bias, square),
        mask=np.broadcast_to(pattern.mask, (*pattern.mask.shape[:-2], sizes.length, sizes.length)),
        rescale=rescale,
    )
    return replace(net, blocks=replace(net.blocks, attention=own), shared=None)
