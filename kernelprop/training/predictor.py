"""From token ids to logits: embedding, the finite network, readout."""

from collections.abc import Callable
from typing import Any

import jax
from jaxtyping import Array, Float, Int

from kernelprop.finite.network import Network, forward
from kernelprop.finite.norm import normalise
from kernelprop.training.parameters import Parameters
from kernelprop.training.trainables import placed

Observe = Callable[[Any, Array, Array], tuple[Any, Any]]


def embedded(parameters: Parameters, tokens: Int[Array, "T"]) -> Float[Array, "T d"]:
    """The input of layer 1: rows of the table, and positions where the description has them."""
    rows = parameters.embedding[tokens]
    return rows if parameters.positions is None else rows + parameters.positions


def features(
    net: Network, parameters: Parameters, tokens: Int[Array, "T"], observe: Observe | None = None
) -> tuple[Float[Array, "T d"], Any]:
    """The last layer's output, behind the final norm if there is one, and what ``observe`` saw at depths ``1 … L``."""
    x = embedded(parameters, tokens)
    # One network: the trained numbers stand where the description's stood.
    y, _, trace = forward(placed(net, parameters.numbers), x, parameters.weights, observe)
    return (y if net.final is None else normalise(net.final, y)), trace.observed


def logits(net: Network, parameters: Parameters, tokens: Int[Array, "batch T"]) -> Float[Array, "batch T V"]:
    """``X_L W`` of a batch."""
    return jax.vmap(lambda one: features(net, parameters, one)[0] @ parameters.readout)(tokens)
