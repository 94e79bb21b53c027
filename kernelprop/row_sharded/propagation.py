"""`propagate_sharded`: the forward engine over several devices, each holding some rows of the kernel."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import Array

from kernelprop import door
from kernelprop.architecture import Transformer
from kernelprop.attention.dense import Dense
from kernelprop.attention.layer import AttentionLayer
from kernelprop.attention.stack import AttentionStack
from kernelprop.infinite import checked_input, evolution_of, to_depth, with_positions
from kernelprop.precision import float_dtype
from kernelprop.results import Evolution
from kernelprop.row_sharded.collectives import AXIS
from kernelprop.row_sharded.row_kernel import split_rows
from kernelprop.row_sharded.sublayers import ROWS
from kernelprop.split_kernel import SplitKernel

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
    depths = np.arange(model.depth, model.depth + len(kernels))
    return evolution_of(model, depths, numbers | {"kernels": kernels}, notes)


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
    own = _cast(model, dtype)
    placed = jax.tree.map(lambda leaf, spec: jax.device_put(leaf, NamedSharding(mesh, spec)), own, _specs(own))
    numbers, last = _scan_on(mesh, placed, kernel0, wanted)
    return numbers, last if wanted else None


def compiled(model: Transformer, mesh: Mesh, dtype: Any = "float64") -> Any:
    """The program that `propagate_sharded` runs, compiled without data: what it needs and sends can be read off it."""
    dtype = float_dtype(dtype)

    def shape(leaf: Any, spec: PartitionSpec) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct(np.shape(leaf), leaf.dtype, sharding=NamedSharding(mesh, spec))

    with jax.enable_x64(True):
        own = _cast(model, dtype)
        kernel0 = shape(np.broadcast_to(dtype.type(0), (model.length,) * 2), PartitionSpec(AXIS, None))
        return _scan_on.lower(mesh, jax.tree.map(shape, own, _specs(own)), kernel0, wanted=False).compile()


def _cast(model: Transformer, dtype: np.dtype) -> Transformer:
    """The network's numbers in the dtype computed in, still on the host; what positions add is in the input."""

    def cast(leaf: Any) -> np.ndarray:
        floating = np.issubdtype(np.asarray(leaf).dtype, np.floating)
        return np.asarray(leaf, dtype if floating else None)

    return jax.tree.map(cast, replace(model, positions=None))


def _specs(model: Transformer) -> Any:
    """How a network lies on the devices: given matrices by rows, all else whole on each."""
    specs = jax.tree.map(lambda leaf: PartitionSpec(), model)
    layer = _layer(model)
    if not isinstance(layer, Dense):
        return specs
    by_rows = PartitionSpec(*(None,) * (np.ndim(layer.entries) - 2), AXIS, None)
    return eqx.tree_at(lambda one: _layer(one).entries, specs, by_rows)


@partial(jax.jit, static_argnames=("mesh", "wanted"))
def _scan_on(mesh: Mesh, model: Transformer, kernel0: Array, wanted: bool) -> tuple[dict[str, Array], Array]:
    """The whole run over the devices of a mesh, compiled once for all networks of a structure."""
    by_rows = PartitionSpec(AXIS, None)
    return jax.shard_map(
        partial(_scan, wanted=wanted),
        mesh=mesh,
        in_specs=(_specs(model), by_rows),
        out_specs=(PartitionSpec(), by_rows),
        check_vma=False,
    )(model, kernel0)


def _scan(model: Transformer, rows: Array, *, wanted: bool) -> tuple[dict[str, Array], Array]:
    """One run through the depth on this device's rows."""
    layered = model.layered()

    def step(state: SplitKernel, number: Array) -> tuple[SplitKernel, dict[str, Array]]:
        state = to_depth(model, layered, number, state, maps=ROWS)
        return state, state.moments()

    state, numbers = lax.scan(step, split_rows(rows), jnp.arange(model.depth + 1))
    return numbers, state.join() if wanted else jnp.zeros((0, rows.shape[1]), rows.dtype)
