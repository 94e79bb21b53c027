"""All that is trained: embeddings, the weights of the finite network, its trained numbers, and the readout."""

from typing import Any, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from kernelprop.architecture import Transformer
from kernelprop.finite import inputs, keys
from kernelprop.finite.families import Gaussian, Shape
from kernelprop.finite.network import Network, all_weights
from kernelprop.training import trainables

Readout = Literal["zero", "gaussian"]
READOUTS = ("zero", "gaussian")
# Behind the purposes that `keys` knows.
READOUT = 16


class Parameters(eqx.Module):
    """The trained arrays.

    Attributes:
        embedding: ``(V, d)``.
        positions: ``(T, d)``, None where the description has none.
        weights: the network's matrices and MLP biases by name, each with a leading layer axis.
        numbers: what of the description is trained, by the names of `trainables`, with a leading layer axis.
        readout: ``(d, V)``.
    """

    embedding: Float[Any, "V d"]
    positions: Float[Any, "T d"] | None
    weights: dict[str, Float[Any, "L ..."]]
    numbers: dict[str, Float[Any, "L ..."]]
    readout: Float[Any, "d V"]


class Start(NamedTuple):
    """How the parts outside the network begin: the embeddings' standard deviation, and the readout."""

    embedding_scale: float = 1.0
    readout: Readout = "zero"


def initial(
    net: Network, model: Transformer, vocabulary: int, names: tuple[str, ...], start: Start, seed: int, dtype: str
) -> Parameters:
    """Draw everything; ``net`` is prepared for ``names``.

    Weights, embeddings and positions are those of draw 0 that ``simulate`` makes of the same key.
    """
    draw = keys.draw_key(keys.root_key(seed), 0)
    factor = inputs.position_factor(model)
    return _draw(net, draw, factor, vocabulary, names, start, dtype)


@eqx.filter_jit
def _draw(
    net: Network, draw: Array, factor: Any, vocabulary: int, names: tuple[str, ...], start: Start, dtype_name: str
) -> Parameters:
    sizes, dtype = net.sizes, jnp.dtype(dtype_name)
    # The token's id makes its row, as where a network is sampled.
    table = inputs.sample(
        inputs.Tokens(jnp.arange(vocabulary, dtype=jnp.uint32)),
        keys.purpose_key(draw, keys.INPUT),
        sizes.width,
        dtype,
    )
    shape = (sizes.length, sizes.width)
    positions = None
    if factor is not None:
        key = keys.purpose_key(draw, keys.POSITIONS)
        positions = inputs.gaussian_with_kernel(jnp.asarray(factor, dtype), key, shape, dtype)
    readout = jnp.zeros((sizes.width, vocabulary), dtype)
    if start.readout == "gaussian":
        readout = Gaussian().draw(keys.purpose_key(draw, READOUT), Shape(sizes.width, vocabulary), dtype)
    return Parameters(
        embedding=table * jnp.asarray(start.embedding_scale, dtype),
        positions=positions,
        weights=all_weights(net, draw, dtype),
        numbers=trainables.read(net, names),
        readout=readout,
    )


def decayed(parameters: Parameters) -> Parameters:
    """Which of them weight decay acts on: matrices, embeddings and readout."""
    weights = {name: not name.startswith("mlp_bias") for name in parameters.weights}
    numbers = dict.fromkeys(parameters.numbers, False)
    return Parameters(True, None if parameters.positions is None else True, weights, numbers, True)


def count(parameters: Parameters) -> int:
    """How many numbers are trained."""
    return sum(leaf.size for leaf in jax.tree.leaves(parameters))
