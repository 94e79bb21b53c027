"""The loss: mean cross-entropy over the positions that count, in nats."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from kernelprop.finite.network import Network
from kernelprop.training.data.source import Batch
from kernelprop.training.parameters import Parameters
from kernelprop.training.predictor import logits


def cross_entropy(
    scores: Float[Array, "batch T V"], targets: Int[Array, "batch T"], counted: Bool[Array, "batch T"]
) -> Float[Array, ""]:
    """``−log softmax(scores)[target]``, averaged over counted positions."""
    chosen = jnp.take_along_axis(scores, targets[..., None], axis=-1)[..., 0]
    each = jax.nn.logsumexp(scores, axis=-1) - chosen
    return jnp.sum(jnp.where(counted, each, 0)) / jnp.sum(counted).astype(each.dtype)


def batch_loss(parameters: Parameters, net: Network, batch: Batch) -> Float[Array, ""]:
    """The loss of a batch."""
    return cross_entropy(logits(net, parameters, batch.tokens), batch.targets, batch.counted)
