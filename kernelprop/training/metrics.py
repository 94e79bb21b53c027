"""What is measured of a network while it trains."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from kernelprop.finite import measures
from kernelprop.finite.network import Network
from kernelprop.results import Estimate
from kernelprop.training.data.source import Batch, Source, generator
from kernelprop.training.loss import batch_loss
from kernelprop.training.parameters import Parameters
from kernelprop.training.predictor import embedded, features


class Seen(NamedTuple):
    """Of the probe's sequences: the mean cosine of two positions at depths ``0 … L``, and the last kernel."""

    token_cosine: Float[Any, "depths"]
    kernel: Float[Any, "T T"]


def validation_batches(source: Source, length: int, size: int, count: int) -> list[Batch]:
    """Batches that no run trains on, the same ones for every run."""
    return [source.batch(length, size, generator("validation", 0, number), "validation") for number in range(count)]


def validation_loss(net: Network, parameters: Parameters, batches: list[Batch]) -> Estimate:
    """The mean loss over batches, each sequence counted alike.

    The standard error is that of single sequences, which are drawn independently: from the means of a few batches it
    would be known to a factor of two at best.
    """
    losses = np.stack([np.asarray(_losses(net, parameters, batch), np.float64) for batch in batches])
    stderr = np.std(losses, ddof=1) / np.sqrt(losses.size)
    return Estimate(np.asarray(np.mean(losses)), np.asarray(stderr), len(batches))


@eqx.filter_jit
def _losses(net: Network, parameters: Parameters, batch: Batch) -> Float[Array, "batch"]:
    def one(sequence: Batch) -> Array:
        return batch_loss(parameters, net, Batch(*(leaf[None] for leaf in sequence)))

    return jax.vmap(one)(batch)


def look(net: Network, parameters: Parameters, probe: Int[Any, "n T"]) -> Seen:
    """Measure the probe."""
    return jax.tree.map(np.asarray, _look(net, parameters, probe))


@eqx.filter_jit
def _look(net: Network, parameters: Parameters, probe: Int[Array, "n T"]) -> Seen:
    def one(tokens: Array) -> Seen:
        last, above = features(net, parameters, tokens, lambda state, y, depth: (state, _cosine(y)))
        first = _cosine(embedded(parameters, tokens))
        return Seen(jnp.concatenate([first[None], above.at[-1].set(_cosine(last))]), measures.kernel_of(last))

    return jax.tree.map(lambda leaf: jnp.mean(leaf, axis=0), jax.vmap(one)(probe))


def _cosine(x: Float[Array, "T d"]) -> Float[Array, ""]:
    return measures.numbers(x, measures.kernel_of(x))["mean_correlation"]


def first_bad_layer(net: Network, parameters: Parameters, batch: Batch) -> int | None:
    """The first layer whose output is not finite, 0 for the input, None where all are."""
    finite = np.asarray(_finite(net, parameters, batch.tokens)).all(axis=0)
    bad = np.flatnonzero(~finite)
    return int(bad[0]) if len(bad) else None


@eqx.filter_jit
def _finite(net: Network, parameters: Parameters, tokens: Int[Array, "batch T"]) -> Array:
    def one(ids: Array) -> Array:
        _, above = features(net, parameters, ids, lambda state, y, depth: (state, jnp.all(jnp.isfinite(y))))
        return jnp.concatenate([jnp.all(jnp.isfinite(embedded(parameters, ids)))[None], above])

    return jax.vmap(one)(tokens)
