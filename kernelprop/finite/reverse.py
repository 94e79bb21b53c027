"""The reverse pass: gradient norms of all weights by one scan from the last layer to the first.

Each layer's weights are drawn again (or taken, where they were kept), its vector-Jacobian product is taken, the
squared norms are read off, and the gradients are gone. Memory: the layers' inputs, ``L T d``, and one layer.

Everything is linear in the cotangent, which therefore goes down at a largest entry of about 1, beside a power of two:
squares of a deep network's vanishing or exploding gradients would leave the range of single precision.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int

from kernelprop.finite.network import Network, apply_layer, weights_of
from kernelprop.finite.products import Products, zero_probes
from kernelprop.layers.block import Block

# Beyond it a power of two would not be a number of single precision, nor its inverse.
LARGEST = 100


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
        the norms by weight, one a layer, in double precision where JAX has it; and the gradient with respect to the
        input.
    """
    wide = jnp.result_type(float)

    def layer(carry: tuple[Array, Array], step: tuple[Block, Any, Array]) -> tuple[tuple, dict[str, Array]]:
        cotangent, exponent = carry
        layered, one, x = step
        drawn = weights_of(net, layered, one, x.dtype)
        below, norms = layer_norms(net, layered, drawn, x, cotangent)
        scaled = {name: jnp.ldexp(norm.astype(wide), 2 * exponent) for name, norm in norms.items()}
        return _apart(below, exponent), scaled

    start = _apart(cotangent, jnp.zeros((), jnp.int32))
    (cotangent, exponent), norms = lax.scan(layer, start, (net.blocks, source, inputs), reverse=True)
    return norms, jnp.ldexp(cotangent, exponent)


def _apart(cotangent: Float[Array, "T d"], exponent: Int[Array, ""]) -> tuple[Float[Array, "T d"], Int[Array, ""]]:
    """``cotangent · 2^exponent``, the cotangent's largest entry between 1/2 and 1; exact."""
    _, own = jnp.frexp(jnp.max(jnp.abs(cotangent)))
    own = jnp.clip(own, -LARGEST, LARGEST)
    # The power of two as a factor: an entry scaled by itself would cost a pass of bit operations each.
    return cotangent * jnp.ldexp(jnp.ones((), cotangent.dtype), -own), exponent + own


def layer_norms(
    net: Network, layered: Block, weights: Any, x: Float[Array, "T d"], cotangent: Float[Array, "T d"]
) -> tuple[Float[Array, "T d"], dict[str, Float[Array, ""]]]:
    """One layer: the cotangent below it and the squared norms of its weights' gradients."""

    def apply(x: Array, probes: dict[str, Array]) -> Array:
        return apply_layer(net, layered, Products(weights, probes), x)

    _, pull = jax.vjp(apply, x, zero_probes(net.names, x.dtype))
    return pull(cotangent)
