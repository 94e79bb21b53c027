"""A chunk of draws on all devices of all processes: each takes its share, the moments come back."""

from functools import partial
from math import prod
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec
from jaxtyping import Array, Bool, UInt32

from kernelprop.finite import keys, moments
from kernelprop.finite.draw import Experiment, layout, packed_draw
from kernelprop.finite.moments import Moments
from kernelprop.finite.plan import Plan
from kernelprop.finite.processes import on_every_process

AXIS = "draws"


class Found(NamedTuple):
    """What a chunk gave: the moments of its packed draws and, where they are kept, the draws, ``(draws, numbers)``."""

    moments: Moments
    draws: Any


def draw_mesh(devices: int) -> Mesh:
    """The first ``devices`` devices in one row; draws are spread along it."""
    return jax.make_mesh((devices,), (AXIS,), axis_types=(AxisType.Auto,), devices=jax.devices()[:devices])


def run_chunk(run: Experiment, root: np.ndarray, first: int, stop: int, plan: Plan, keep_from: int) -> Found:
    """Draws ``first … stop − 1`` (at most a chunk), merged over devices, as numpy arrays in double precision.

    A draw's key is made from its number, so that neither the devices nor the chunks matter for what it is.

    Args:
        run: the experiment, in numpy arrays, which every process can hand to all devices.
        root: the root key's numbers.
        first: the first draw.
        stop: the draw behind the last one.
        plan: how draws are spread.
        keep_from: single draws' numbers are returned from this place of the packed vector on.
    """
    count = stop - first
    shape = (plan.devices, plan.groups, plan.together)
    # Devices come fastest, so that a chunk that isn't full is spread over all of them.
    order = np.arange(plan.chunk).reshape(plan.groups, plan.together, plan.devices).transpose(2, 0, 1)
    numbers = (first + np.minimum(order, count - 1)).astype(np.uint32)
    mesh = draw_mesh(plan.devices)
    spread = NamedSharding(mesh, PartitionSpec(AXIS))
    placed = [jax.make_array_from_callback(shape, spread, lambda i, a=a: a[i]) for a in (numbers, order < count)]
    found = on_every_process(_on_mesh(run, root, *placed, mesh, keep_from))
    total, *rest = [Moments(*(leaf[device] for leaf in found.moments)) for device in range(plan.devices)]
    for part in rest:
        total = moments.merge(total, part)
    in_order = np.argsort(order.ravel())[:count]
    return Found(total, found.draws.reshape(order.size, -1)[in_order])


@partial(jax.jit, static_argnames=("mesh", "keep_from"))
def _on_mesh(
    run: Experiment,
    root: UInt32[Any, "words"],
    numbers: UInt32[Array, "devices groups together"],
    counted: Bool[Array, "devices groups together"],
    mesh: Mesh,
    keep_from: int,
) -> Found:
    def on_device(run: Experiment, root: Array, numbers: Array, counted: Array) -> Found:
        key = jax.random.wrap_key_data(root, impl=keys.GENERATOR)
        found = _groups(run, key, numbers[0], counted[0], keep_from)
        return jax.tree.map(lambda leaf: leaf[None], found)

    whole, split = PartitionSpec(), PartitionSpec(AXIS)
    sharded = jax.shard_map(
        on_device, mesh=mesh, in_specs=(whole, whole, split, split), out_specs=split, check_vma=False
    )
    return sharded(run, root, numbers, counted)


def _groups(run: Experiment, root: Array, numbers: Array, counted: Array, keep_from: int) -> Found:
    """One device's share: its groups in turn, each merged into the moments as it ends."""
    together = numbers.shape[1]
    size = sum(prod(shape) for shape in layout(run).values())

    def draws(numbers: Array) -> Array:
        if together == 1:  # A batch axis of one would cost matrix products their fast path.
            return packed_draw(run, keys.draw_key(root, numbers[0]))[None]
        return jax.vmap(lambda number: packed_draw(run, keys.draw_key(root, number)))(numbers)

    def group(total: Moments, step: tuple[Array, Array]) -> tuple[Moments, Array]:
        numbers, counted = step

        def work(total: Moments) -> tuple[Moments, Array]:
            values = draws(numbers)
            return moments.merge(total, moments.of_batch(values, counted)), values[:, keep_from:]

        def nothing(total: Moments) -> tuple[Moments, Array]:
            return total, jnp.zeros((together, size - keep_from), jnp.float64)

        # Places behind the last draw cost nothing.
        return lax.cond(jnp.any(counted), work, nothing, total)

    return Found(*lax.scan(group, moments.nothing_yet(size), (numbers, counted)))
