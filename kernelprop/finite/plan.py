"""How many draws run at once, and whether they fit in memory."""

from typing import NamedTuple

import jax
import numpy as np

from kernelprop import memory
from kernelprop.finite.families import Shape
from kernelprop.finite.network import Network
from kernelprop.finite.processes import of_every_process

# Weights kept between the forward and the reverse pass save one drawing; more than this is not taken for it.
LARGEST_KEPT_WEIGHTS = 2 * 2**30
# Rows of the products on an accelerator, below which it idles: then several draws run side by side.
WANTED_ROWS = 8192
# Work between two reports of progress: about two seconds, so that an interrupt is heard.
CHUNK_OPERATIONS = {"cpu": 1e11, "other": 2e13}
MOST_DRAWS = 256


class Plan(NamedTuple):
    """A chunk is ``devices × groups × together`` draws; a device takes its groups in turn, each side by side."""

    devices: int
    groups: int
    together: int
    keep_weights: bool

    @property
    def chunk(self) -> int:
        """The number of draws between two reports."""
        return self.devices * self.groups * self.together


def make_plan(net: Network, kept: int, draws: int, *, gradients: bool, itemsize: int) -> Plan:
    """Choose the sizes for the devices at hand.

    Raises:
        ValueError: where not even one draw a device fits in memory, with the size.
    """
    # Every process takes part, with devices that idle where the draws are few: one left out would not hear the result.
    devices = jax.device_count() if jax.process_count() > 1 else min(jax.device_count(), draws)
    on_cpu = jax.default_backend() == "cpu"
    # Processes must do the same chunks, so that the poorest decides.
    available = min(of_every_process(_available_a_device(on_cpu)))
    size = draw_bytes(net, kept, gradients=gradients, itemsize=itemsize)
    if size > available:
        raise ValueError(
            f"simulate: one draw needs {memory.in_words(size)}, and {memory.in_words(available)} a device are "
            "available; lower the width, the positions, or the depths that keep names"
        )
    share = -(-draws // devices)
    together = 1 if on_cpu else _side_by_side(net, share, int(available / 2 // size))
    stored = together * net.sizes.depth * layer_parameters(net) * itemsize
    keep_weights = gradients and stored <= min(LARGEST_KEPT_WEIGHTS, available / 4)
    operations = draw_operations(net, gradients=gradients) * together
    groups = int(CHUNK_OPERATIONS["cpu" if on_cpu else "other"] // operations)
    # A power of two, so that few numbers of draws need a compilation of their own; places left over cost nothing.
    share_in_groups = 1 << max(2, (-(-share // together) - 1).bit_length())
    groups = max(1, min(groups, MOST_DRAWS, share_in_groups))
    return Plan(devices, groups, together, keep_weights)


def draw_bytes(net: Network, kept: int, *, gradients: bool, itemsize: int) -> int:
    """What one draw needs: its kept kernels, the layers' inputs, and one layer's weights and activations."""
    sizes = net.sizes
    rows = sizes.length * sizes.width
    hidden = max((shape.fan_out for _, shape in net.shapes), default=sizes.width)
    attention = sizes.length**2 * (1 + (4 * sizes.heads if "query" in net.names else 1))
    inputs = sizes.depth * rows if gradients else 0
    # Double precision sums beside the kernels; weights twice, a drawing and the product that reads it.
    kernels = kept * sizes.length**2 * (itemsize + 3 * 8)
    return kernels + itemsize * (inputs + 2 * layer_parameters(net) + attention + 8 * sizes.length * hidden)


def layer_parameters(net: Network) -> int:
    """The number of entries of one layer's matrices."""
    return sum(shape.fan_in * shape.fan_out for _, shape in net.shapes)


def draw_operations(net: Network, *, gradients: bool) -> float:
    """Floating-point operations of the products of one draw, counted as multiplications plus additions.

    Forward: every matrix once, ``2 T`` a parameter, and the attention. With gradients: the forward pass again, the
    cotangents, and the norms, the cheaper of two ways for each matrix. Zero queries take no product, their keys one,
    on the way back.
    """
    sizes, shapes = net.sizes, dict(net.shapes)
    length = sizes.length
    mixing = 2.0 * length**2 * sizes.heads * sizes.head_width
    scores = mixing if "query" in shapes and not net.zero_queries else 0.0
    at_work = {name: shape for name, shape in shapes.items() if not (net.zero_queries and name in ("query", "key"))}
    weights = sum(2.0 * length * shape.fan_in * shape.fan_out for shape in at_work.values())
    once = weights + mixing + scores + 2.0 * length**2 * sizes.width
    if not gradients:
        return sizes.depth * once
    # Cotangents of two factors for each product of the attention.
    back = 2 * weights + 3 * (mixing + scores)
    back -= sum(2.0 * length * shapes[name].fan_in * shapes[name].fan_out for name in _not_needed_again(net))
    back += sum(_norm_operations(length, shape) for shape in at_work.values())
    if net.zero_queries:
        key = shapes["key"]
        back += 2.0 * length * key.fan_in * key.fan_out + mixing + _norm_operations(length, shapes["query"])
    return sizes.depth * (once + back)


def _not_needed_again(net: Network) -> tuple[str, ...]:
    """The products whose outcome only the layer's output takes, which the way back doesn't ask for."""
    norm = net.blocks.norm
    if norm is not None and norm.place == "post":
        return ()
    last = ("output", "mlp_out") if net.blocks.parallel else (("mlp_out",) if "mlp_out" in net.names else ("output",))
    return tuple(name for name in last if name in net.names)


def _norm_operations(length: int, shape: Shape) -> float:
    direct = 2.0 * length * shape.fan_in * shape.fan_out
    return min(direct, 2.0 * length**2 * (shape.fan_in + shape.fan_out))


def _side_by_side(net: Network, share: int, fits: int) -> int:
    wanted = -(-WANTED_ROWS // net.sizes.length)
    return int(np.clip(wanted, 1, max(1, min(share, fits))))


def _available_a_device(on_cpu: bool) -> float:
    """Bytes for one device: of an accelerator its own, of CPU devices their share of the machine's."""
    if not on_cpu:
        stats = jax.local_devices()[0].memory_stats() or {}
        if "bytes_limit" in stats:
            return stats["bytes_limit"] - stats.get("bytes_in_use", 0)
    available = memory.available_bytes()
    return float("inf") if available is None else available / jax.local_device_count()
