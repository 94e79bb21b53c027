"""The attention sublayer with random queries and keys."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Key

from kernelprop.attention.random_softmax import RandomSoftmax
from kernelprop.layers import attention
from kernelprop.layers.random_logits import Draw, draw, factor
from kernelprop.precision import full_product
from kernelprop.split_kernel import SplitKernel, common_part, comparable

# Entries of a batch of drawn matrices: short sequences then run in few steps, long ones a matrix at a time. Measured:
# larger batches leave the cache.
BATCH_ENTRIES = 2**16


class Moments(NamedTuple):
    """Means over draws ``A = d cᵀ + B``, ``d = D1`` fixed, of what the kernel map needs.

    ``shared = E[cᵀRc]``, ``mixed = E[BRc] (T,)``, ``own = E[BRBᵀ] (T, T)``, and of the cross part ``v``:
    ``moved = E[cᵀv]``, ``moved_own = E[Bv] (T,)``.
    """

    shared: Float[Array, ""]
    mixed: Float[Array, "T"]
    own: Float[Array, "T T"]
    moved: Float[Array, ""]
    moved_own: Float[Array, "T"]


@attention.forward.register
def forward(
    layer: RandomSoftmax, kernel: SplitKernel, key: Array | None = None, batch_entries: int = BATCH_ENTRIES
) -> SplitKernel:
    """``Σ ← mean of A Σ Aᵀ`` over the layer's draws (theory: attention with random logits).

    ``A = d cᵀ + B`` with row sums ``r`` that are the same in every draw, so that the mean is ``s rrᵀ + r wᵀ +
    w rᵀ + k ddᵀ + d uᵀ + u dᵀ + E[BRBᵀ]``, ``w = E[Av]``, ``k = E[cᵀRc]``, ``u = E[BRc]``. All but the last term
    is common to all positions where ``D`` is, and the last one has the size of the centred part to come.

    Args:
        layer: the description.
        kernel: the kernel that enters.
        key: draw ``n`` takes ``fold_in(key, n)``. None only where the logits vanish.
        batch_entries: about how many matrix entries are drawn at once; the result doesn't depend on it, beyond
            rounding.

    Raises:
        ValueError: for random logits without a key.
    """
    if layer.is_random and key is None:
        raise ValueError("random attention: a key is wanted, None was given")
    moments = _moments(layer, kernel, key if layer.is_random else None, batch_entries)
    ones = jnp.ones_like(kernel.cross)
    scale = ones if layer.rescale is None else jnp.asarray(layer.rescale, ones.dtype)
    row_sums = layer.identity_weight + (layer.softmax_weight - layer.centre_weight) * scale
    products = (
        (row_sums, row_sums, kernel.common / 2),
        (row_sums, scale, moments.moved),
        (row_sums, moments.moved_own, 1.0),
        (scale, scale, moments.shared / 2),
        (scale, moments.mixed, 1.0),
    )
    return _gathered((moments.own + moments.own.T) / 2, products)


def drawn(attention: Any) -> RandomSoftmax | None:
    """The attention, if it has to be drawn."""
    return attention if isinstance(attention, RandomSoftmax) and attention.is_random else None


def _moments(layer: RandomSoftmax, kernel: SplitKernel, key: Key[Array, ""] | None, batch_entries: int) -> Moments:
    """Stream over the draws, a batch at a time."""
    count = layer.draws if layer.is_random else layer.bias_count
    batch = min(count, max(1, batch_entries // layer.length**2))
    root = factor(kernel)
    length, dtype = layer.length, kernel.rest.dtype
    zero = Moments(*(jnp.zeros(shape, dtype) for shape in ((), (length,), (length, length), (), (length,))))

    def one(number: Array) -> Moments:
        own_key = None if key is None else jax.random.fold_in(key, number)
        moments = _of_one_draw(layer, kernel, draw(layer, root, own_key, number % layer.bias_count))
        # The last batch may have more numbers than there are draws.
        return jax.tree.map(lambda x: jnp.where(number < count, x, 0.0), moments)

    def add(total: Moments, numbers: Array) -> tuple[Moments, None]:
        # A batch axis of one would cost matrix products their fast path.
        sums = one(numbers[0]) if batch == 1 else jax.tree.map(lambda x: jnp.sum(x, axis=0), jax.vmap(one)(numbers))
        return jax.tree.map(jnp.add, total, sums), None

    numbers = jnp.arange(-(-count // batch) * batch).reshape(-1, batch)
    total, _ = lax.scan(add, zero, numbers)
    return jax.tree.map(lambda x: x / count, total)


def _of_one_draw(layer: RandomSoftmax, kernel: SplitKernel, matrix: Draw) -> Moments:
    """``cᵀRc``, ``BRc``, ``BRBᵀ``, ``cᵀv`` and ``Bv`` of one matrix."""
    row, apart = matrix
    if layer.rescale is not None:
        apart = jnp.asarray(layer.rescale, apart.dtype)[:, None] * apart
    apart = apart + layer.identity_weight * jnp.eye(layer.length, dtype=apart.dtype)
    kernel_row = full_product(kernel.rest, row)
    return Moments(
        shared=full_product(row, kernel_row),
        mixed=full_product(apart, kernel_row),
        own=full_product(full_product(apart, kernel.rest), apart.T),
        moved=full_product(row, kernel.cross),
        moved_own=full_product(apart, kernel.cross),
    )


def _gathered(own: Float[Array, "T T"], products: tuple[tuple[Array, Array, Any], ...]) -> SplitKernel:
    """``own + Σ a (x yᵀ + y xᵀ)`` as common part, cross part and rest."""
    wanted = comparable(jnp.diagonal(own) + sum(2 * a * x * y for x, y, a in products))
    common, cross = jnp.zeros((), own.dtype), jnp.zeros_like(own[0])
    for x, y, a in products:
        x_mean, y_mean = (jnp.where(wanted, _mean(z), 0.0) for z in (x, y))
        x, y = x - x_mean, y - y_mean
        common += 2 * a * x_mean * y_mean
        cross += a * (x_mean * y + y_mean * x)
        outer = a * x[:, None] * y[None, :]
        own += outer + outer.T
    own_common, own_cross, edge = common_part(own, wanted)
    return SplitKernel(common + own_common, cross + own_cross, own - edge[:, None] - edge[None, :])


def _mean(x: Float[Array, "T"]) -> Float[Array, ""]:
    """The mean, exact where all entries are one number."""
    return x[0] + jnp.mean(x - x[0])
