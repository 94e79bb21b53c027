"""The scans of the backward engine: through the depth of a network and back."""

import math
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from kernelprop.architecture import Transformer
from kernelprop.chains import mean_over_chains
from kernelprop.layers import block, block_gradients, norm, random_gradients  # noqa: F401 - registers its face
from kernelprop.layers.block import Passage
from kernelprop.layers.block_tangents import BlockBends, block_bends, final_bend
from kernelprop.layers.pairing import pairing
from kernelprop.layers.random_attention import drawn
from kernelprop.layers.score_gradients import Rows
from kernelprop.split_kernel import SplitKernel
from kernelprop.tangents import Above, exact_corrections, sampled_corrections

Kernel = Float[Array, "T T"]


class Steps(NamedTuple):
    """What one layer of the scans takes: its slice, its number, and whether it is one of the network's (None: yes)."""

    layered: block.Block
    number: Array
    active: Array | None


class Settings(NamedTuple):
    """What is compiled into the scans."""

    keep_cotangents: bool
    checkpoint: bool
    query_method: str
    draws: int


class Found(NamedTuple):
    """The engine's numbers at width 1: rows ``(L,)`` by name, standard errors of those that are estimates (by name,
    ``cotangents`` among them), and the cotangent kernels at depths ``0…L`` if they are kept.
    """

    rows: Rows
    stderr: Rows
    pulled: Float[Array, "depths T T"] | None


class Layerwise(NamedTuple):
    """What the way back leaves of every layer, the last two None where they aren't wanted."""

    rows: Rows
    pulled: Float[Array, "*layers T T"] | None
    bends: BlockBends | None


@partial(jax.jit, static_argnums=3)
def scans(model: Transformer, entered: SplitKernel, above: Kernel, settings: Settings, seed: Array) -> Found:
    """Both ways through a network of arrays, from the input kernel and the loss's cotangent kernel.

    Under random attention all numbers are means over its independent chains; ``seed`` is of sampled corrections.
    """
    random = drawn(model.attention)
    if random is None:
        return _one_run(model, entered, above, settings, jax.random.key(seed), None)

    def run(key: Array) -> Found:
        return _one_run(model, entered, above, settings, None, key)

    mean, stderr = mean_over_chains(run, jax.random.key(random.seed), random.chains)
    errors = stderr.rows | ({} if stderr.pulled is None else {"cotangents": stderr.pulled})
    return mean._replace(stderr=errors)


def _one_run(
    model: Transformer, entered: SplitKernel, above: Kernel, settings: Settings, seed: Array | None, key: Array | None
) -> Found:
    """One run; ``key`` draws random attention, layer ``l`` from ``fold_in(key, l)``, as the forward engine does."""
    stderr = {}
    if settings.checkpoint:
        below, found, final = _by_segments(model, entered, above, settings, key)
    else:
        steps = Steps(model.layered(), jnp.arange(1, model.depth + 1), None)
        last, passages = _through(model, entered, steps, key)
        pulled, final = _final_norm(model, last, above)
        below, found = _back(model, pulled, steps, passages, settings, key)
        if found.bends is not None:
            bend = final_bend(model.norm, last, above) if model.norm is not None and model.norm.final else None
            upper = Above(steps.layered, passages, found.bends, bend)
            rows, stderr = _corrected(model, found.rows, upper, settings, seed)
            found = found._replace(rows=rows)
    rows = found.rows | final | {"input": jnp.trace(below)}
    return Found(rows, stderr, None if found.pulled is None else jnp.concatenate([found.pulled, above[None]]))


def _by_segments(
    model: Transformer, entered: SplitKernel, above: Kernel, settings: Settings, key: Array | None
) -> tuple[Array, Layerwise, Rows]:
    """Both ways, segment by segment of about ``√L`` layers, whose kernels alone are held at a time."""
    segments = _segments(model, math.isqrt(model.depth - 1) + 1)
    last, starts = lax.scan(lambda state, steps: (_through(model, state, steps, key)[0], state), entered, segments)
    pulled, final = _final_norm(model, last, above)

    def back(pulled: Array, segment: tuple[SplitKernel, Steps]) -> tuple[Array, Layerwise]:
        start, steps = segment
        return _back(model, pulled, steps, _through(model, start, steps, key)[1], settings, key)

    below, found = lax.scan(back, pulled, (starts, segments), reverse=True)
    return below, jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:])[: model.depth], found), final


def _through(model: Transformer, state: SplitKernel, steps: Steps, key: Array | None) -> tuple[SplitKernel, Passage]:
    """Forward through some layers, with what the way back needs of each."""

    def layer(state: SplitKernel, step: Steps) -> tuple[SplitKernel, Passage]:
        after, kept = block.passage(model.block(step.layered), state, _own(key, step))
        return _if_active(step.active, after, state), kept

    return lax.scan(layer, state, steps)


def _back(
    model: Transformer, pulled: Kernel, steps: Steps, passages: Passage, settings: Settings, key: Array | None
) -> tuple[Array, Layerwise]:
    """Back through the same layers: what each leaves, and the cotangent kernel that enters the first."""

    def layer(pulled: Array, step: tuple[Steps, Passage]) -> tuple[Array, Layerwise]:
        own, passed = step
        here = model.block(own.layered)
        below, rows, inner = block_gradients.backward(here, passed, pulled, _own(key, own))
        below = _if_active(own.active, below, pulled)
        bends = None if settings.query_method == "first_order" else block_bends(here, passed, inner)
        return below, Layerwise(rows, below if settings.keep_cotangents else None, bends)

    return lax.scan(layer, pulled, (steps, passages), reverse=True)


def _corrected(
    model: Transformer, rows: Rows, above: Above, settings: Settings, seed: Array | None
) -> tuple[Rows, Rows]:
    """Rows with what the layers above add beyond the first order, and the standard errors of those sampled."""
    if settings.query_method == "exact":
        more, stderr = exact_corrections(model, above), {}
    else:
        assert seed is not None
        more, stderr = sampled_corrections(model, above, seed, settings.draws)
    return rows | {name: rows[name] + row for name, row in more.items()}, stderr


def _segments(model: Transformer, count: int) -> Steps:
    """The layers in segments of ``count``; those past the last repeat it and are not active."""
    segments = -(-model.depth // count)
    missing = segments * count - model.depth

    def cut(leaf: Array) -> Array:
        padded = jnp.pad(leaf, [(0, missing)] + [(0, 0)] * (leaf.ndim - 1), mode="edge")
        return padded.reshape(segments, count, *leaf.shape[1:])

    layered = jax.tree.map(cut, model.layered())
    active = (jnp.arange(segments * count) < model.depth).reshape(segments, count)
    return Steps(layered, cut(jnp.arange(1, model.depth + 1)), active)


def _final_norm(model: Transformer, last: SplitKernel, above: Kernel) -> tuple[Array, Rows]:
    if model.norm is None or not model.norm.final:
        return above, {}
    row = pairing(above, norm.forward(model.norm, last))
    return norm.backward(model.norm, last.diagonal(), above), {"final_norm": row}


def _if_active(active: Array | None, new: Any, old: Any) -> Any:
    return new if active is None else jax.tree.map(lambda one, other: jnp.where(active, one, other), new, old)


def _own(key: Array | None, step: Steps) -> Array | None:
    return None if key is None else jax.random.fold_in(key, step.number)


def cast(leaf: Any, dtype: Any) -> Array:
    """Numbers become the dtype computed in; masks and seeds stay what they are."""
    return jnp.asarray(leaf, dtype if jnp.issubdtype(jnp.result_type(leaf), jnp.floating) else None)
