"""A chunk of draws on all devices of all processes: each takes its share, the moments come back."""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental import multihost_utils
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec
from jaxtyping import Array, Bool, UInt32

from kernelprop.finite import keys, moments
from kernelprop.finite.draw import Experiment, one_draw
from kernelprop.finite.moments import Moments
from kernelprop.finite.plan import Plan

AXIS = "draws"


class Scattered(NamedTuple):
    """What each device found: its moments, and single draws' numbers where they are kept."""

    moments: Moments
    samples: dict[str, Any]


def draw_mesh(devices: int) -> Mesh:
    """The first ``devices`` devices in one row; draws are spread along it."""
    return jax.make_mesh((devices,), (AXIS,), axis_types=(AxisType.Auto,), devices=jax.devices()[:devices])


def run_chunk(
    run: Experiment, root: np.ndarray, first: int, stop: int, plan: Plan, sampled: tuple[str, ...] = ()
) -> Scattered:
    """Draws ``first … stop − 1`` (at most a chunk), merged over devices, as numpy arrays in double precision.

    ``root`` is the key as plain numbers, which every process can hand to all devices.

    A draw's key is made from its number, so that neither the devices nor the chunks matter for what it is.
    """
    count = stop - first
    shape = (plan.devices, plan.groups, plan.together)
    # Devices come fastest, so that a chunk that isn't full is spread over all of them.
    order = np.arange(plan.chunk).reshape(plan.groups, plan.together, plan.devices).transpose(2, 0, 1)
    numbers = (first + np.minimum(order, count - 1)).astype(np.uint32).reshape(shape)
    mesh = draw_mesh(plan.devices)
    spread = NamedSharding(mesh, PartitionSpec(AXIS))
    placed = [jax.make_array_from_callback(shape, spread, lambda i, a=a: a[i]) for a in (numbers, order < count)]
    found = _on_mesh(run, root, *placed, mesh, sampled)
    found = _to_every_process(found)
    parts = [jax.tree.map(lambda leaf, d=d: leaf[d], found.moments) for d in range(plan.devices)]
    total = parts[0]
    for part in parts[1:]:
        total = moments.merge(total, part)
    return Scattered(total, {name: _in_order(leaf, order, count) for name, leaf in found.samples.items()})


def _to_every_process(tree: Any) -> Any:
    if jax.process_count() > 1:
        tree = multihost_utils.process_allgather(tree, tiled=True)
    return jax.tree.map(np.asarray, tree)


def _in_order(leaf: np.ndarray, order: np.ndarray, count: int) -> np.ndarray:
    """Single draws' numbers, sorted by draw."""
    flat = leaf.reshape(order.size, *leaf.shape[3:])
    return flat[np.argsort(order.ravel())][:count]


@partial(jax.jit, static_argnames=("mesh", "sampled"))
def _on_mesh(
    run: Experiment,
    root: UInt32[Any, "words"],
    numbers: UInt32[Array, "devices groups together"],
    counted: Bool[Array, "devices groups together"],
    mesh: Mesh,
    sampled: tuple[str, ...],
) -> Scattered:
    def on_device(run: Experiment, root: Array, numbers: Array, counted: Array) -> Scattered:
        key = jax.random.wrap_key_data(root, impl=keys.GENERATOR)
        found = _groups(run, key, numbers[0], counted[0], sampled)
        return jax.tree.map(lambda leaf: leaf[None], found)

    whole, split = PartitionSpec(), PartitionSpec(AXIS)
    sharded = jax.shard_map(
        on_device, mesh=mesh, in_specs=(whole, whole, split, split), out_specs=split, check_vma=False
    )
    return sharded(run, root, numbers, counted)


def _groups(run: Experiment, root: Array, numbers: Array, counted: Array, sampled: tuple[str, ...]) -> Scattered:
    """One device's share: its groups in turn, each merged into the moments as it ends."""

    def draws(numbers: Array) -> dict[str, Array]:
        if len(numbers) == 1:  # A batch axis of one would cost matrix products their fast path.
            values = one_draw(run, keys.draw_key(root, numbers[0]))
            return jax.tree.map(lambda leaf: leaf[None], values)
        return jax.vmap(lambda number: one_draw(run, keys.draw_key(root, number)))(numbers)

    def group(total: Moments, step: tuple[Array, Array]) -> tuple[Moments, dict[str, Array]]:
        numbers, counted = step

        def work(total: Moments) -> tuple[Moments, dict[str, Array]]:
            values = draws(numbers)
            merged = moments.merge(total, moments.of_batch(values, counted))
            return merged, {name: values[name] for name in sampled}

        # Places behind the last draw cost nothing.
        return lax.cond(jnp.any(counted), work, lambda total: (total, _zeros(single, sampled)), total)

    single = jax.eval_shape(draws, numbers[0])
    start = moments.nothing_yet(jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype), single))
    total, samples = lax.scan(group, start, (numbers, counted))
    return Scattered(total, samples)


def _zeros(shapes: dict[str, Any], names: tuple[str, ...]) -> dict[str, Array]:
    return {name: jnp.zeros(shapes[name].shape, shapes[name].dtype) for name in names}
