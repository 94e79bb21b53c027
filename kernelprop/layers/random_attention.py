"""The attention sublayer with random queries and keys."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Key

from kernelprop.attention.random_softmax import RandomSoftmax
from kernelprop.layers.random_logits import Factor, draw, factor
from kernelprop.split_kernel import SplitKernel, common_part, comparable

# Entries of a batch of drawn matrices: short sequences then run in few steps, long ones a matrix at a time.
BATCH_ENTRIES = 2**18


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


def forward(
    layer: RandomSoftmax, kernel: SplitKernel, key: Key[Array, ""] | None, batch_entries: int = BATCH_ENTRIES
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
    moved = moments.moved * scale + moments.moved_own
    pairs = (
        (row_sums, kernel.common / 2 * row_sums + moved),
        (scale, moments.shared / 2 * scale + moments.mixed),
    )
    return _gathered((moments.own + moments.own.T) / 2, pairs)


def _moments(
    layer: RandomSoftmax, kernel: SplitKernel, key: Key[Array, ""] | None, batch_entries: int
) -> Moments:
    """Stream over the draws, a batch at a time."""
    count = layer.draws if layer.is_random else layer.bias_count
    batch = min(count, max(1, batch_entries // layer.length**2))
    root = factor(kernel)
    length, dtype = layer.length, kernel.rest.dtype
    zero = Moments(*(jnp.zeros(shape, dtype) for shape in ((), (length,), (length, length), (), (length,))))

    def add(total: Moments, numbers: Array) -> tuple[Moments, None]:
        return jax.tree.map(jnp.add, total, _batch_sums(layer, kernel, root, key, numbers, count)), None

    numbers = jnp.arange(-(-count // batch) * batch).reshape(-1, batch)
    total, _ = lax.scan(add, zero, numbers)
    return jax.tree.map(lambda x: x / count, total)


def _batch_sums(
    layer: RandomSoftmax,
    kernel: SplitKernel,
    root: Factor,
    key: Key[Array, ""] | None,
    numbers: Array,
    count: int,
) -> Moments:
    """Sum over a batch of draws; those past the last weigh nothing."""

    def one(number: Array) -> tuple[Array, Array]:
        drawn = draw(layer, root, None if key is None else jax.random.fold_in(key, number), number % layer.bias_count)
        weight = jnp.where(number < count, 1.0, 0.0).astype(drawn.row.dtype)
        apart = drawn.apart if layer.rescale is None else jnp.asarray(layer.rescale)[:, None] * drawn.apart
        apart = apart + layer.identity_weight * jnp.eye(layer.length, dtype=apart.dtype)
        return weight * drawn.row, weight * apart

    rows, apart = jax.vmap(one)(numbers)
    kernel_rows = _contract("bi,ij->bj", rows, kernel.rest)
    return Moments(
        shared=jnp.sum(rows * kernel_rows),
        mixed=_contract("bij,bj->i", apart, kernel_rows),
        own=_contract("bij,bkj->ik", _contract("bij,jk->bik", apart, kernel.rest), apart),
        moved=jnp.sum(_contract("bi,i->b", rows, kernel.cross)),
        moved_own=_contract("bij,j->i", apart, kernel.cross),
    )


def _gathered(own: Float[Array, "T T"], pairs: tuple[tuple[Array, Array], ...]) -> SplitKernel:
    """``own + Σ (x yᵀ + y xᵀ)`` as common part, cross part and rest."""
    wanted = comparable(jnp.diagonal(own) + sum(2 * x * y for x, y in pairs))
    common, cross = jnp.zeros((), own.dtype), jnp.zeros_like(own[0])
    for x, y in pairs:
        x_mean, y_mean = (jnp.where(wanted, _mean(z), 0.0) for z in (x, y))
        x, y = x - x_mean, y - y_mean
        common += 2 * x_mean * y_mean
        cross += x_mean * y + y_mean * x
        own += x[:, None] * y[None, :] + y[:, None] * x[None, :]
    own_common, own_cross, edge = common_part(own, wanted)
    return SplitKernel(common + own_common, cross + own_cross, own - edge[:, None] - edge[None, :])


def _mean(x: Float[Array, "T"]) -> Float[Array, ""]:
    """The mean, exact where all entries are one number."""
    return x[0] + jnp.mean(x - x[0])


def _contract(spec: str, left: Array, right: Array) -> Array:
    return jnp.einsum(spec, left, right, precision=lax.Precision.HIGHEST)
