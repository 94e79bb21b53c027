"""One draw of the whole network: input, weights, forward pass, reverse pass, and what is measured on the way."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from kernelprop.finite import inputs, keys, measures, reverse
from kernelprop.finite.network import Network, Trace, forward
from kernelprop.finite.norm import normalise
from kernelprop.kept_depths import KeptDepths


class Experiment(eqx.Module):
    """All that a draw needs but its key: the network, its input, its loss, and what to keep.

    ``slots (L+1,)`` and ``written (L+1,)`` say where each depth's kernel goes, as in `KeptDepths`.
    """

    network: Network
    source: Any
    positions: Float[Any, "T T"] | None
    cotangent: Float[Any, "T T"] | None
    slots: Int[Any, "depths"]
    written: Bool[Any, "depths"]
    kept: int = eqx.field(static=True)
    gradients: bool = eqx.field(static=True)
    keep_weights: bool = eqx.field(static=True)
    dtype: str = eqx.field(static=True)


def experiment(
    network: Network, fed: tuple, kept: KeptDepths, *, gradients: bool, keep_weights: bool, dtype: str
) -> Experiment:
    """Put an experiment together; ``fed`` is the input, the positions' factor and the cotangent's factor."""
    source, positions, cotangent = fed
    return Experiment(
        network=network,
        source=source,
        positions=positions,
        cotangent=cotangent,
        slots=np.asarray(kept.slots),
        written=np.asarray(kept.written),
        kept=len(kept.depths),
        gradients=gradients,
        keep_weights=keep_weights,
        dtype=dtype,
    )


def layout(run: Experiment) -> dict[str, tuple[int, ...]]:
    """The shape of everything that a draw measures, by name, in the order in which it is packed."""
    sizes = run.network.sizes
    depths, length = sizes.depth + 1, sizes.length
    shapes: dict[str, tuple[int, ...]] = {"kernels": (run.kept, length, length), "diagonal": (depths, length)}
    shapes |= dict.fromkeys(measures.SCALARS, (depths,))
    return shapes | dict.fromkeys(run.network.names if run.gradients else (), (sizes.depth,))


def packed_draw(run: Experiment, key: Array) -> Float[Array, "numbers"]:
    """One draw as one vector in double precision: sums over draws then compile as one, not as one a name."""
    values = one_draw(run, key)
    return jnp.concatenate([values[name].astype(jnp.float64).ravel() for name in layout(run)])


def unpacked(vectors: Float[np.ndarray, "*draws numbers"], shapes: dict[str, tuple[int, ...]]) -> dict[str, np.ndarray]:
    """The numbers of packed draws by name, each with the leading axes of ``vectors``."""
    ends = np.cumsum([int(np.prod(shape)) for shape in shapes.values()])
    pieces = np.split(vectors, ends[:-1], axis=-1)
    leading = vectors.shape[:-1]
    return {name: piece.reshape(*leading, *shape) for (name, shape), piece in zip(shapes.items(), pieces, strict=True)}


def one_draw(run: Experiment, key: Array) -> dict[str, Array]:
    """Everything measured in one draw, by name, with a leading axis over depths, or over layers for gradients."""
    net = run.network
    dtype = jnp.dtype(run.dtype)
    x = _input(run, key, dtype)
    layers = keys.layer_keys(key, net.sizes.depth)
    buffer = jnp.zeros((run.kept, len(x), len(x)), dtype)
    buffer, first = _observe(run, buffer, x, jnp.zeros((), int))
    last, buffer, trace = forward(
        net,
        x,
        layers,
        lambda buffer, y, depth: _observe(run, buffer, y, depth),
        buffer,
        keep_inputs=run.gradients,
        keep_weights=run.keep_weights,
    )
    numbers = jax.tree.map(lambda a, b: jnp.concatenate([a[None], b]), first, trace.observed)
    if net.final is not None:
        buffer, normed = _observe(run, buffer, normalise(net.final, last), jnp.asarray(net.sizes.depth))
        numbers = jax.tree.map(lambda a, b: a.at[-1].set(b), numbers, normed)
    norms = _gradient_norms(run, key, last, trace, layers) if run.gradients else {}
    return {"kernels": buffer} | numbers | norms


def _input(run: Experiment, key: Array, dtype: Any) -> Array:
    sizes = run.network.sizes
    x = inputs.sample(run.source, keys.purpose_key(key, keys.INPUT), sizes.width, dtype)
    if run.positions is None:
        return x
    shape = (sizes.length, sizes.width)
    return x + inputs.gaussian_with_kernel(run.positions, keys.purpose_key(key, keys.POSITIONS), shape, dtype)


def _observe(run: Experiment, buffer: Array, x: Array, depth: Array) -> tuple[Array, dict[str, Array]]:
    kernel = measures.kernel_of(x)
    buffer = measures.keep_kernel(buffer, kernel, run.slots[depth], run.written[depth])
    return buffer, measures.numbers(x, kernel)


def _gradient_norms(run: Experiment, key: Array, last: Array, trace: Trace, layers: Array) -> dict[str, Array]:
    net = run.network
    shape = (net.sizes.length, net.sizes.width)
    cotangent = inputs.gaussian_with_kernel(run.cotangent, keys.purpose_key(key, keys.COTANGENT), shape, last.dtype)
    if net.final is not None:
        final = net.final
        (cotangent,) = jax.vjp(lambda x: normalise(final, x), last)[1](cotangent)
    source = trace.weights if run.keep_weights else layers
    assert trace.inputs is not None
    return reverse.gradient_norms(net, source, trace.inputs, cotangent)[0]
