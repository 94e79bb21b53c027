"""The infinite-width engine: kernels forward through the depth of a network, one scan."""

from collections.abc import Sequence
from functools import partial
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from kernelprop import door, observables, trust
from kernelprop.architecture import Transformer
from kernelprop.attention.random_softmax import RandomSoftmax
from kernelprop.attention.stack import AttentionStack
from kernelprop.chains import mean_over_chains
from kernelprop.kept_depths import KeptDepths, kept_depths
from kernelprop.layers import block, random_attention, random_logits
from kernelprop.precision import float_dtype, in_double
from kernelprop.results import Evolution
from kernelprop.split_kernel import SplitKernel, split
from kernelprop.unresolved import refuse_unresolved_layers

Keep = Literal["all", "last"] | int | Sequence[int]


def propagate(
    model: Transformer,
    kernel0: Any,
    keep: Keep = "all",
    observables: Literal["moments", "all"] = "moments",
    *,
    dtype: Any = "float64",
) -> Evolution:
    """Follow the kernel matrix through all layers at infinite width.

    Every sublayer is a map of kernels (theory: forward recursion): attention ``mean_h A_h Σ A_hᵀ``, an MLP the dual
    kernel of its activation, a norm the division by the diagonal, a residual ``α² Σ + β² Σ_branch``. One scan over
    depth; the common and the centred part of the kernel are carried apart, so that the rank residual of a
    collapsing network stays right far below rounding.

    Under `random_softmax` every number is a mean over independent chains through the whole depth, with its standard
    error in the field ``…_stderr``. All kernels of a batch see the same draws.

    Args:
        model: the network.
        kernel0: the input kernel ``Σ_0``, ``(T, T)``, or a batch of them, ``(…, T, T)``.
        keep: the depths whose kernels are returned: ``"all"``, ``"last"``, or depths among ``0…L``.
        observables: ``"moments"`` (``O(T²)`` a depth), or ``"all"`` with the spectral ones and the attention's
            entropy (eigenvalues cost more than the layer).
        dtype: float64, or float32 on request.

    Returns:
        An `Evolution` of numpy arrays of that dtype.

    Raises:
        ValueError: for a kernel that is none, shapes that don't fit, or kernels that don't fit in memory; for an
            activation that grows too fast for its variance, with the layer and the variance.

    >>> import kernelprop as kp
    >>> evolution = kp.propagate(kp.Transformer(kp.uniform(4), depth=2), kp.kernels.identity(4))
    >>> evolution.mean_correlation
    array([0., 1., 1.])
    """
    if observables not in ("moments", "all"):
        raise ValueError(f"observables: {observables!r} is unknown; use 'moments' or 'all'")
    kernel0 = checked_input(model, kernel0)
    dtype = float_dtype(dtype)
    batch = kernel0.shape[:-2]
    # Chains keep a running mean, its square and the chain at hand.
    copies = 1 if random_attention.drawn(model.attention) is None else 3
    kept = kept_depths(keep, model.depth, model.length, copies * int(np.prod(batch)) * dtype.itemsize)
    flat = with_positions(model, kernel0).reshape(-1, *kernel0.shape[-2:])
    numbers = _evolve(model, flat, kept, observables == "all", dtype)
    refuse_unresolved_layers(model, flat, numbers["diagonal"])
    shaped = {name: value.reshape(*batch, *value.shape[1:]) for name, value in numbers.items()}
    return evolution_of(model, kept.depths, shaped, _notes(model, kernel0))


def checked_input(model: Transformer, kernel0: Any) -> np.ndarray:
    """Check an input kernel at the door, unless `kernelprop.kernels` made it, and that it fits the network."""
    kernel = kernel0 if trust.is_certified(kernel0) else door.kernel(kernel0, "kernel0")
    if kernel.shape[-1] != model.length:
        raise ValueError(f"kernel0: {kernel.shape[-1]} positions, but the attention has {model.length}")
    if model.norm is not None and model.norm.epsilon == 0:
        for index in np.argwhere(np.diagonal(with_positions(model, kernel), axis1=-2, axis2=-1) == 0).tolist():
            raise ValueError(f"kernel0: position {index[-1]} is zero, and a norm with epsilon=0 divides by it")
    return kernel


def with_positions(model: Transformer, kernel: np.ndarray) -> np.ndarray:
    """``Σ_0 + Σ_pos``: what positional embeddings, independent of the tokens, add to the input kernel."""
    return kernel if model.positions is None else kernel + model.positions


@in_double
def _evolve(
    model: Transformer, kernels: np.ndarray, kept: KeptDepths, spectral: bool, dtype: np.dtype
) -> dict[str, np.ndarray]:
    """Run the scan for a flat batch of kernels in the given dtype; the kept kernels are among the numbers."""
    model = jax.tree.map(lambda leaf: _cast(leaf, dtype), model)
    slots = (jnp.asarray(kept.slots), jnp.asarray(kept.written))
    settings = (slots, len(kept.depths), kept.last_only, spectral)
    if random_attention.drawn(model.attention) is not None:
        return _scan_chains(model, _cast(kernels, dtype), *settings)
    if len(kernels) == 1:  # A batch axis of one would cost matrix products their fast path.
        out = _scan(model, _cast(kernels[0], dtype), *settings)
        return jax.tree.map(lambda leaf: leaf[None], jax.tree.map(np.asarray, out))
    return jax.vmap(lambda k: _scan(model, k, *settings))(_cast(kernels, dtype))


def _cast(leaf: Any, dtype: np.dtype) -> Array:
    """Numbers become the dtype computed in; masks and seeds stay what they are."""
    return jnp.asarray(leaf, dtype if jnp.issubdtype(jnp.result_type(leaf), jnp.floating) else None)


@partial(jax.jit, static_argnums=(3, 4, 5))
def _scan(
    model: Transformer,
    kernel0: Float[Array, "T T"],
    slots: tuple[Array, Array],
    count: int,
    last_only: bool,
    spectral: bool,
    key: Array | None = None,
) -> dict[str, Array]:
    """One run through the depth; ``key`` draws random attention, layer ``l`` from ``fold_in(key, l)``.

    Depth 0 is a step too, whose layer is left out: what reads numbers off a kernel is compiled once.
    """
    layered = model.layered()

    normed_last = model.norm is not None and model.norm.final

    def step(carry: tuple[SplitKernel, Array, Array], at: tuple[Array, Array, Array]) -> tuple:
        state, buffer, last_sum = carry
        number, slot, written = at
        total = _sum_at_depth(model, layered, number, state, key, block.WHOLE)
        if normed_last:
            last_sum = total.diagonal()
        state = _finished(model, number, total, block.WHOLE)
        return (state, _keep(buffer, state, slot, written), last_sum), _numbers(state, spectral, key is not None)

    buffer = jnp.zeros((0 if last_only else count, *kernel0.shape), kernel0.dtype)
    none = jnp.zeros(model.length if normed_last else 0, kernel0.dtype)
    carry, numbers = lax.scan(step, (split(kernel0), buffer, none), (jnp.arange(model.depth + 1), *slots))
    state, buffer, last_sum = carry
    numbers |= {"last_sum": last_sum} if normed_last else {}
    return numbers | {"kernels": state.join()[None] if last_only else buffer}


def to_depth(
    model: Transformer,
    layered: block.Block,
    number: Array,
    state: SplitKernel,
    key: Array | None = None,
    maps: block.Maps = block.WHOLE,
) -> SplitKernel:
    """The kernel of the depth before as the one of depth ``number``: through that layer, or at depth 0 itself."""
    return _finished(model, number, _sum_at_depth(model, layered, number, state, key, maps), maps)


def _finished(model: Transformer, number: Array, state: SplitKernel, maps: block.Maps) -> SplitKernel:
    """Behind the last layer, the final norm if there is one."""
    if model.norm is None or not model.norm.final:
        return state
    return lax.cond(number == model.depth, partial(maps.norm, model.norm), lambda same: same, state)


def _sum_at_depth(
    model: Transformer, layered: block.Block, number: Array, state: SplitKernel, key: Array | None, maps: block.Maps
) -> SplitKernel:
    """`to_depth` in front of a final norm."""

    def layer(state: SplitKernel) -> SplitKernel:
        here = jax.tree.map(lambda leaf: lax.dynamic_index_in_dim(leaf, number - 1, keepdims=False), layered)
        own = None if key is None else jax.random.fold_in(key, number)
        return block.forward(model.block(here), state, own, maps)

    return lax.cond(number > 0, layer, lambda same: same, state)


@partial(jax.jit, static_argnums=(3, 4, 5))
def _scan_chains(
    model: Transformer,
    kernels: Float[Array, "batch T T"],
    slots: tuple[Array, Array],
    count: int,
    last_only: bool,
    spectral: bool,
) -> dict[str, Array]:
    """The mean of independent runs and its standard error, one kernel of the batch after the other."""
    layer: RandomSoftmax = model.attention

    def one(kernel0: Array) -> dict[str, Array]:
        def run(key: Array) -> dict[str, Array]:
            return _scan(model, kernel0, slots, count, last_only, spectral, key)

        mean, stderr = mean_over_chains(run, jax.random.key(layer.seed), layer.chains)
        return mean | {f"{name}_stderr": value for name, value in stderr.items()}

    return lax.map(one, kernels)


def _keep(buffer: Array, state: SplitKernel, slot: Array, written: Array) -> Array:
    """Write the kernel into its slot; one that isn't kept leaves the slot as it was."""
    if not buffer.shape[0]:
        return buffer
    kernel = jnp.where(written, state.join(), buffer[slot])
    return buffer.at[slot].set(kernel)


def _numbers(state: SplitKernel, spectral: bool, drawn: bool) -> dict[str, Array]:
    """The observables of one depth, and under drawn attention whether its logits lost the kernel to rounding."""
    numbers = state.moments()
    if drawn:
        numbers |= {"lost": random_logits.lost_to_rounding(state).astype(state.rest.dtype)}
    if not spectral:
        return numbers
    values = observables.eigenvalues(state.join())
    return numbers | {
        "eigenvalues": values,
        "effective_rank": observables.entropy_rank(values),
        "stable_rank": observables.sum_over_maximum(values),
        "eigenvalue_gap": observables.first_over_second(values),
    }


def evolution_of(
    model: Transformer, depths: np.ndarray, numbers: dict[str, np.ndarray], notes: tuple[str, ...]
) -> Evolution:
    """Put the arrays, their flags and what a reader should know together."""
    residual = numbers["rank_residual"]
    healthy = (numbers["diagonal"] > 0) & np.isfinite(numbers["diagonal"])
    lost = numbers.pop("lost", np.zeros_like(residual)) > 0
    for name in ("lost_stderr", "last_sum_stderr"):
        numbers.pop(name, None)
    return Evolution(
        depth=depths,
        **numbers,
        undefined=np.asarray(~healthy.all(-1)),
        below_floor=(residual <= _floor(model, residual.dtype)) | lost,
        attention_entropy=_entropy(model) if "eigenvalues" in numbers else None,
        description=model,
        notes=notes,
    )


def _notes(model: Transformer, kernel0: np.ndarray) -> tuple[str, ...]:
    notes = []
    if kernel0.shape[-1] > door.EIGENVALUE_TEST_LIMIT and not trust.is_certified(kernel0):
        notes.append(f"eigenvalues of the input not tested: T > {door.EIGENVALUE_TEST_LIMIT}")
    layer = random_attention.drawn(model.attention)
    if layer is not None:
        notes.append(layer.in_words())
    return tuple(notes)


def _floor(model: Transformer, dtype: np.dtype) -> float:
    """The rank residual that rounding alone makes.

    Of the order of eps where the centred part is carried through every layer, of its root behind an MLP, whose
    map starts from the whole kernel.
    """
    linear = model.mlp is None
    return 16 * float(np.finfo(dtype).eps) if linear else observables.rank_residual_floor(dtype)


def _entropy(model: Transformer) -> np.ndarray | None:
    """The mean entropy of every layer's attention rows, ``(L,)``; None where the matrices are not given."""
    if isinstance(model.attention, RandomSoftmax):
        return None
    layers = list(model.attention) if isinstance(model.attention, AttentionStack) else [model.attention]
    matrices = (layer.as_matrix() for layer in layers)
    entropies = [np.mean(observables.mean_attention_entropy(m)) if (m >= 0).all() else np.nan for m in matrices]
    return np.broadcast_to(entropies, (model.depth,)).copy()
