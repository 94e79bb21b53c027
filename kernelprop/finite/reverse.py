"""The reverse pass: gradient norms of all weights by one scan from the last layer to the first.

Each layer's weights are drawn again (or taken, where they were kept), its vector-Jacobian product is taken, the
squared norms are read off, and the gradients are gone. Memory: the layers' inputs, ``L T d``, and one layer.
"""

from typing import Any

import jax
from jax import lax
from jaxtyping import Array, Float

from kernelprop.finite.network import Network, apply_layer, weights_of
from kernelprop.finite.products import Products, zero_probes
from kernelprop.layers.block import Block


def gradient_norms(
    net: Network, source: Any, inputs: Float[Array, "L T d"], cotangent: Float[Array, "T d"]
) -> tuple[dict[str, Float[Array, "L"]], Float[Array, "T d"]]:
    """Squared Frobenius norms of the loss's gradients.

    Args:
        net: the network.
        source: the layers' keys, or their weights, as for the forward pass.
        inputs: the input of every layer.
        cotangent: the gradient of the loss with respect to the last layer's output.

    Returns:
        the norms by weight, one a layer, and the gradient with respect to the input.
    """

    def layer(cotangent: Array, step: tuple[Block, Any, Array]) -> tuple[Array, dict[str, Array]]:
        layered, one, x = step
        drawn = weights_of(net, layered, one, x.dtype)
        return layer_norms(net, layered, drawn, x, cotangent)

    cotangent, norms = lax.scan(layer, cotangent, (net.blocks, source, inputs), reverse=True)
    return norms, cotangent


def layer_norms(
    net: Network, layered: Block, weights: Any, x: Float[Array, "T d"], cotangent: Float[Array, "T d"]
) -> tuple[Float[Array, "T d"], dict[str, Float[Array, ""]]]:
    """One layer: the cotangent below it and the squared norms of its weights' gradients."""

    def apply(x: Array, probes: dict[str, Array]) -> Array:
        return apply_layer(net, layered, Products(weights, probes), x)

    _, pull = jax.vjp(apply, x, zero_probes(net.names, x.dtype))
    return pull(cotangent)
