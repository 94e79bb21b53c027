"""`propagate_sharded`: the forward engine over several devices, each holding some rows of the kernel."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import Array

from kernelprop import door, observables
from kernelprop.architecture import Transformer
from kernelprop.attention.dense import Dense
from kernelprop.attention.layer import AttentionLayer
from kernelprop.attention.stack import AttentionStack
from kernelprop.infinite import checked_input, with_positions
from kernelprop.layers.block import Block
from kernelprop.precision import float_dtype
from kernelprop.results import Evolution
from kernelprop.row_sharded.collectives import AXIS
from kernelprop.row_sharded.row_kernel import RowKernel, split_rows
from kernelprop.row_sharded.sublayers import block_rows, norm_rows

Rows = Callable[[int, int], Any]


def propagate_sharded(
    model: Transformer,
    kernel0: Any,
    devices: Sequence[Any] | None = None,
    keep: Literal["last", "none"] = "last",
    *,
    dtype: Any = "float64",
) -> Evolution:
    """Follow the kernel matrix through all layers with its rows spread over devices.

    The recursion of `propagate`, whose numbers it gives to rounding. A device holds ``T²/P`` entries a matrix. A layer
    of structured attention sends one block to each other device (``T²/P`` entries a device in all); one of given
    matrices, which are spread by rows too, sends them round twice. Activations without a closed form are integrated
    entry by entry, which costs more than `propagate` does.

    Args:
        model: the network; its attention given or structured.
        kernel0: the input kernel ``Σ_0``, ``(T, T)``; or a function of ``start, stop`` that returns the rows
            ``start … stop − 1``, for a kernel that no single memory holds.
        devices: what to run on; all of JAX's if None. Their number divides ``T``.
        keep: ``"last"``, or ``"none"`` for the numbers alone.
        dtype: float64, or float32 on request.

    Returns:
        An `Evolution` of numpy arrays; under ``"none"`` its ``kernels`` has no kernel.

    Raises:
        ValueError: for a kernel that is none, random attention, and a length that the devices don't divide.

    >>> import kernelprop as kp
    >>> model = kp.Transformer(kp.uniform(4, causal=True), depth=3)
    >>> evolution = kp.propagate_sharded(model, kp.kernels.identity(4))
    >>> bool(abs(evolution.rank_residual - kp.propagate(model, kp.kernels.identity(4)).rank_residual).max() < 1e-14)
    True
    """
    if keep not in ("last", "none"):
        raise ValueError(f"keep: {keep!r} is unknown; use 'last' or 'none'")
    mesh = mesh_over(model.length, devices)
    if not isinstance(_layer(model), AttentionLayer):
        raise ValueError(f"attention: {type(model.attention).__name__} can't be followed by rows; use kp.propagate")
    dtype = float_dtype(dtype)
    rows, notes = _input(model, kernel0)
    with jax.enable_x64(True):
        numbers, last = _run(model, rows, mesh, keep == "last", dtype)
        numbers = {name: np.asarray(value) for name, value in numbers.items()}
        kernels = np.zeros((0, model.length, model.length), dtype) if last is None else np.asarray(last)[None]
    residual, diagonal = numbers["rank_residual"], numbers["diagonal"]
    floor = 16 * float(np.finfo(dtype).eps) if model.mlp is None else observables.rank_residual_floor(residual.dtype)
    return Evolution(
        depth=np.arange(model.depth, model.depth + len(kernels)),
        kernels=kernels,
        **numbers,
        undefined=np.asarray(~((diagonal > 0) & np.isfinite(diagonal)).all(-1)),
        below_floor=residual <= floor,
        description=model,
        notes=notes,
    )


def mesh_over(length: int, devices: Sequence[Any] | None = None) -> Mesh:
    """Devices in a row, each with as many positions; a ValueError where they don't divide the length."""
    chosen = list(jax.devices() if devices is None else devices)
    if not chosen or length % len(chosen):
        fitting = max(n for n in range(1, max(len(chosen), 1) + 1) if length % n == 0)
        raise ValueError(f"devices: {len(chosen)} don't divide {length} positions; give devices=, {fitting} of them")
    return Mesh(np.array(chosen), (AXIS,))


def _layer(model: Transformer) -> Any:
    return model.attention.layers if isinstance(model.attention, AttentionStack) else model.attention


def _input(model: Transformer, kernel0: Any) -> tuple[Rows, tuple[str, ...]]:
    if not callable(kernel0):
        kernel = checked_input(model, kernel0)
        if kernel.ndim != 2:
            raise ValueError(f"kernel0: shape {kernel.shape}; by rows one kernel (T, T) is followed at a time")
        whole = with_positions(model, kernel)
        return lambda start, stop: whole[start:stop], ()

    def rows(start: int, stop: int) -> np.ndarray:
        raw = np.asarray(kernel0(start, stop))
        if raw.shape != (stop - start, model.length):
            raise ValueError(
                f"kernel0: rows {start}…{stop - 1} have shape {raw.shape}, ({stop - start}, {model.length}) is wanted"
            )
        for row, column in np.argwhere(raw != raw).tolist():
            raise ValueError(f"kernel0: position {start + row}, {column}: {raw[row, column]} is not finite")
        part = door.real_array(raw, f"kernel0: rows {start}…{stop - 1}")
        square = part[:, start:stop]
        root = np.sqrt(np.maximum(np.diagonal(square), 0))
        rounding = door.kernel_rounding(part.dtype, model.length) * np.maximum(np.outer(root, root), np.abs(square))
        if (np.abs(square - square.T) > rounding).any():
            raise ValueError(f"kernel0: rows {start}…{stop - 1} are not those of a symmetric matrix")
        return part if model.positions is None else part + model.positions[start:stop]

    return rows, ("input given by rows: its symmetry and eigenvalues not tested as a whole",)


def _run(
    model: Transformer, rows: Rows, mesh: Mesh, wanted: bool, dtype: np.dtype
) -> tuple[dict[str, Array], Array | None]:
    by_rows = NamedSharding(mesh, PartitionSpec(AXIS, None))

    def part(index: Any) -> np.ndarray:
        start, stop, _ = index[0].indices(model.length)
        return np.asarray(rows(start, stop), dtype)

    kernel0 = jax.make_array_from_callback((model.length, model.length), by_rows, part)
    parts = arrays(model, dtype)
    placed = jax.tree.map(lambda leaf, spec: jax.device_put(leaf, NamedSharding(mesh, spec)), parts, specs(parts))
    numbers, last = scan_on(mesh, *placed, kernel0, depth=model.depth, wanted=wanted)
    return numbers, last if wanted else None


def compiled(model: Transformer, mesh: Mesh, dtype: Any = "float64") -> Any:
    """The program that `propagate_sharded` runs, compiled without data: what it needs and sends can be read off it."""
    dtype = float_dtype(dtype)
    with jax.enable_x64(True):
        parts = arrays(model, dtype)
        kernel = jax.ShapeDtypeStruct(
            (model.length,) * 2, dtype, sharding=NamedSharding(mesh, PartitionSpec(AXIS, None))
        )
        shapes = jax.tree.map(
            lambda leaf, spec: jax.ShapeDtypeStruct(np.shape(leaf), leaf.dtype, sharding=NamedSharding(mesh, spec)),
            parts,
            specs(parts),
        )
        return scan_on.lower(mesh, *shapes, kernel, depth=model.depth, wanted=False).compile()


@partial(jax.jit, static_argnames=("mesh", "depth", "wanted"))
def scan_on(
    mesh: Mesh, shared: Any, layered: Block, kernel0: Array, *, depth: int, wanted: bool
) -> tuple[dict[str, Array], Array]:
    """The whole run over the devices of a mesh, compiled once for all networks of a structure."""
    by_rows = PartitionSpec(AXIS, None)
    return jax.shard_map(
        partial(scan_rows, depth=depth, wanted=wanted),
        mesh=mesh,
        in_specs=(*specs((shared, layered)), by_rows),
        out_specs=(PartitionSpec(), by_rows),
        check_vma=False,
    )(shared, layered, kernel0)


def arrays(model: Transformer, dtype: np.dtype) -> tuple[Any, Block]:
    """The attention that all layers share, None where each has its own, and all blocks with a leading layer axis."""

    def cast(leaf: Any) -> Any:
        floating = np.issubdtype(np.asarray(leaf).dtype, np.floating)
        return np.asarray(leaf, dtype if floating else None)

    shared = None if isinstance(model.attention, AttentionStack) else jax.tree.map(cast, model.attention)
    return shared, jax.tree.map(cast, model.layered())


def specs(parts: tuple[Any, Block]) -> tuple[Any, Any]:
    """How `arrays` lie on the devices: given matrices by rows, all else whole on each."""
    shared, layered = parts
    return _spec(shared), replace(jax.tree.map(_whole, layered), attention=_spec(layered.attention))


def _spec(attention: Any) -> Any:
    if not isinstance(attention, Dense):
        return jax.tree.map(_whole, attention)
    return replace(attention, entries=PartitionSpec(*(None,) * (np.ndim(attention.entries) - 2), AXIS, None))


def _whole(leaf: Any) -> PartitionSpec:
    return PartitionSpec()


def scan_rows(shared: Any, layered: Block, rows: Array, *, depth: int, wanted: bool) -> tuple[dict[str, Array], Array]:
    """One run through the depth on this device's rows; depth 0 is a step whose layer is left out."""

    def layer(number: Array, state: RowKernel) -> RowKernel:
        here = jax.tree.map(lambda leaf: lax.dynamic_index_in_dim(leaf, number - 1, keepdims=False), layered)
        here = here if shared is None else replace(here, attention=shared)
        state = block_rows(here, state)
        how = here.norm
        if how is None or not how.final:
            return state
        return lax.cond(number == depth, partial(norm_rows, how), lambda same: same, state)

    def step(state: RowKernel, number: Array) -> tuple[RowKernel, dict[str, Array]]:
        state = lax.cond(number > 0, partial(layer, number), lambda same: same, state)
        return state, state.moments()

    state, numbers = lax.scan(step, split_rows(rows), jnp.arange(depth + 1))
    return numbers, state.join() if wanted else jnp.zeros((0, rows.shape[1]), rows.dtype)
