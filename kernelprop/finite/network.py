"""The finite network of a description: sizes, distributions of weights, and one scan over depth."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from kernelprop.architecture import Transformer
from kernelprop.finite import block, keys, mlp
from kernelprop.finite.families import Family, Shape, Zero
from kernelprop.finite.patterns import Pattern, PlainPattern, patterns
from kernelprop.finite.products import Products
from kernelprop.finite.scheme import weight_families
from kernelprop.finite.sizes import Sizes, network_sizes
from kernelprop.finite.threefry import normal
from kernelprop.layers.block import Block
from kernelprop.layers.norm import Norm


class Network(eqx.Module):
    """A description at one width: all that a draw needs but its key.

    ``blocks`` has a leading layer axis on every array; an attention pattern that all layers share stands apart.
    ``shapes`` and ``biases`` name the weights that are drawn, in the order of `keys.WEIGHT_TAGS`.
    """

    blocks: Block
    shared: Pattern | None
    final: Norm | None
    families: dict[str, Family]
    sizes: Sizes = eqx.field(static=True)
    shapes: tuple[tuple[str, Shape], ...] = eqx.field(static=True)
    biases: tuple[tuple[str, int], ...] = eqx.field(static=True)

    def block(self, layer: Block) -> Block:
        """One layer's slice of ``blocks``, with the attention that all share put back."""
        return layer if self.shared is None else replace(layer, attention=self.shared)

    @property
    def names(self) -> tuple[str, ...]:
        """The matrices that the network has: those whose gradients are measured."""
        return tuple(name for name, _ in self.shapes)

    @property
    def zero_queries(self) -> bool:
        """Whether there are queries, and all of them zero."""
        return isinstance(self.families.get("query"), Zero)


def network(
    model: Transformer,
    width: int,
    *,
    heads: int | None = None,
    head_width: int | None = None,
    weights: Any = "gaussian",
    gradients: bool = False,
) -> Network:
    """Set a description up at a width; numpy arrays throughout, cast by `cast`.

    Queries that are zero are left out together with their keys unless gradients are wanted: then they add nothing
    to what the network computes.

    Raises:
        ValueError: for sizes that don't fit and unknown weights.
    """
    attention = patterns(model.attention)
    sizes = network_sizes(model, width, heads, head_width, attention)
    pattern = attention.pattern
    random_queries = not isinstance(pattern, PlainPattern) and pattern.random_queries
    families = weight_families(weights, random_queries)
    with_queries = not isinstance(pattern, PlainPattern) and (gradients or not isinstance(families["query"], Zero))
    shapes = sizes.attention_shapes(with_queries) | mlp.shapes(model.mlp, width)
    return Network(
        blocks=replace(model.layered(), attention=pattern if attention.layered else None),
        shared=None if attention.layered else pattern,
        final=model.norm if model.norm is not None and model.norm.final else None,
        families={name: families[name] for name in shapes},
        sizes=sizes,
        shapes=tuple(shapes.items()),
        biases=tuple(mlp.biases(model.mlp, width).items()),
    )


def cast(tree: Any, dtype: Any) -> Any:
    """Every floating-point array of a tree in one dtype; masks stay what they are."""

    def one(leaf: Any) -> Array:
        array = jnp.asarray(leaf)
        return array.astype(dtype) if jnp.issubdtype(array.dtype, jnp.floating) else array

    return jax.tree.map(one, tree)


def layer_weights(net: Network, layer: Block, key: Array, dtype: Any) -> dict[str, Array]:
    """Draw the weights of one layer, gains included; ``key (tags,)`` holds a key for each."""
    gains = _gains(layer)
    drawn = {}
    for name, shape in net.shapes:
        # Queries that are zero are left out: see `logits_of_zero_queries`.
        if name != "query" or not net.zero_queries:
            matrix = net.families[name].draw(keys.weight_key(key, name), shape, dtype)
            drawn[name] = matrix * gains[name].astype(dtype)
    variances = {} if layer.mlp is None else mlp.bias_variances(layer.mlp)
    for name, length in net.biases:
        bias = normal(keys.weight_key(key, name), (length,), dtype)
        drawn[name] = bias * jnp.sqrt(variances[name]).astype(dtype)
    return drawn


def _gains(layer: Block) -> dict[str, Array]:
    one = jnp.ones(())
    names = ("query", "key", "value", "output")
    gains = {name: one if layer.gains is None else getattr(layer.gains, name) for name in names}
    if not isinstance(layer.attention, PlainPattern):
        gains["query"] = gains["query"] * layer.attention.query_gain
        gains["key"] = gains["key"] * layer.attention.key_gain
    return gains | ({} if layer.mlp is None else dict(mlp.gains(layer.mlp)))


def all_weights(net: Network, draw: Array, dtype: Any) -> dict[str, Float[Array, "L ..."]]:
    """The weights of all layers of one draw, zero queries included, each with a leading layer axis: for training."""
    steps = (net.blocks, keys.layer_keys(draw, net.sizes.depth))
    drawn = lax.map(lambda step: layer_weights(net, net.block(step[0]), step[1], dtype), steps)
    return (drawn | {"query": jnp.zeros_like(drawn["key"])}) if net.zero_queries else drawn


class Trace(NamedTuple):
    """What a pass through all layers leaves behind: inputs of every layer and weights, None where not kept."""

    inputs: Float[Array, "L T d"] | None
    weights: Mapping[str, Array] | None
    observed: Any


def forward(
    net: Network,
    x: Float[Array, "T d"],
    source: Any,
    observe: Callable[[Any, Array, Array], tuple[Any, Any]] | None = None,
    state: Any = None,
    *,
    keep_inputs: bool = False,
    keep_weights: bool = False,
) -> tuple[Float[Array, "T d"], Any, Trace]:
    """One scan over depth.

    Args:
        net: the network, cast to the dtype of ``x``.
        x: one example, the input of layer 1.
        source: keys of the layers ``(L, tags)``, from which each draws its weights when its turn comes; or the weights
            themselves, with a leading layer axis.
        observe: ``(state, output, depth) → (state, numbers)`` for the output of every layer, or None.
        state: what ``observe`` starts from.
        keep_inputs: whether the input of every layer is returned.
        keep_weights: whether the weights are.

    Returns:
        the output of the last layer before the final norm, the last state, and the `Trace`.
    """

    def layer(carry: tuple[Array, Any], step: tuple) -> tuple:
        x, state = carry
        layered, one, depth = step
        drawn = weights_of(net, layered, one, x.dtype)
        y = apply_layer(net, layered, Products(drawn), x)
        state, numbers = (state, None) if observe is None else observe(state, y, depth)
        return (y, state), Trace(x if keep_inputs else None, drawn if keep_weights else None, numbers)

    steps = (net.blocks, source, jnp.arange(1, net.sizes.depth + 1))
    (x, state), trace = lax.scan(layer, (x, state), steps)
    return x, state, trace


def weights_of(net: Network, layered: Block, source: Any, dtype: Any) -> Mapping[str, Array]:
    """One layer's weights: as they are given, or drawn from its key."""
    return source if isinstance(source, Mapping) else layer_weights(net, net.block(layered), source, dtype)


def apply_layer(net: Network, layered: Block, product: Products, x: Float[Array, "T d"]) -> Float[Array, "T d"]:
    """One layer with given weights."""
    return block.apply(net.block(layered), product, x, net.sizes.heads)
