"""What a training run needs of memory, and whether that is there."""

import jax

from kernelprop import memory
from kernelprop.finite.network import Network
from kernelprop.finite.plan import layer_parameters

# The parameters, their gradients, two memories of Adam's, and the state before, to go back to.
COPIES = 8


def needed_bytes(net: Network, vocabulary: int, batch: int, itemsize: int) -> float:
    """Parameters and what comes with them, and what the way back needs of every layer and sequence."""
    sizes = net.sizes
    trained = sizes.depth * layer_parameters(net) + 2 * vocabulary * sizes.width
    hidden = sum(shape.fan_out for _, shape in net.shapes)
    scores = 4 * sizes.heads * sizes.length**2
    kept = sizes.depth * (sizes.length * (4 * sizes.width + 2 * hidden) + scores) + 3 * sizes.length * vocabulary
    return float(itemsize) * (COPIES * trained + batch * kept)


def refuse_if_too_large(net: Network, vocabulary: int, batch: int, itemsize: int) -> None:
    """Refuse what doesn't fit.

    Raises:
        ValueError: with the size.
    """
    needed = needed_bytes(net, vocabulary, batch, itemsize)
    available = memory.available_bytes()
    if jax.default_backend() != "cpu":
        stats = jax.local_devices()[0].memory_stats() or {}
        available = stats.get("bytes_limit", available)
    if available is not None and needed > available:
        raise ValueError(
            f"train: about {memory.in_words(needed)} are needed, and {memory.in_words(available)} are available; lower "
            "the batch, the width or the depth"
        )
