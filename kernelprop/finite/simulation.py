"""Sampled networks of finite width: the measured side of every prediction."""

import os
import time
from collections.abc import Callable
from math import prod
from typing import Any, Literal

import jax
import numpy as np

from kernelprop import door
from kernelprop.architecture import Transformer
from kernelprop.finite import chunks, keys
from kernelprop.finite.checkpoint import Progress
from kernelprop.finite.draw import Experiment, experiment, layout, unpacked
from kernelprop.finite.ensemble import Ensemble
from kernelprop.finite.inputs import cotangent_factor, network_input, position_factor
from kernelprop.finite.measures import SCALARS
from kernelprop.finite.network import Network, network
from kernelprop.finite.patterns import PlainPattern
from kernelprop.finite.plan import make_plan
from kernelprop.finite.processes import of_every_process
from kernelprop.finite.scheme import MATRICES
from kernelprop.infinite import Keep
from kernelprop.kept_depths import KeptDepths, kept_depths
from kernelprop.precision import float_dtype
from kernelprop.results import Estimate

Report = Callable[[int, int, float], None]

# What the names mean to the matrix product: all digits of the dtype, or whatever the device does fastest.
PRECISIONS = {"highest": "highest", "fast": "default"}


def simulate(
    model: Transformer,
    kernel0: Any = None,
    *,
    inputs: Any = None,
    width: int,
    draws: int,
    key: Any,
    heads: int | None = None,
    head_width: int | None = None,
    weights: Any = "gaussian",
    gradients: bool = False,
    keep: Keep = "last",
    dtype: Any = "float32",
    precision: Literal["highest", "fast"] = "highest",
    cotangent: Any = None,
    samples: bool = False,
    progress: Report | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
) -> Ensemble:
    """Sample networks of one width and measure their kernels, and the gradient norms of their weights.

    Draws are independent: weights, input (from ``kernel0``, or an embedding) and loss are new in each. They run on
    all devices of all processes, a key belonging to a draw and not to a device, so that the result depends on
    neither beyond the rounding of a sum. Weights are drawn layer by layer from keys, and drawn again on the way
    back, so that memory grows with ``L T d`` and not with ``L d²``.

    Args:
        model: the network.
        kernel0: the input kernel ``Σ_0 (T, T)``; then ``X = F Q √d``, ``Q`` Haar, new in each draw, ``d ≥ T``.
        inputs: instead of it, one example ``(T, d)`` for all draws, or token ids ``(T,)``, embedded by N(0, 1) rows.
        width: ``d``.
        draws: the number of independent draws, at least 2.
        key: a seed in ``0…2³²−1``, or a JAX key.
        heads: ``H``; that of the attention, or 1, by default.
        head_width: ``d_k``; ``d/H`` by default.
        weights: ``"gaussian"``, ``"orthogonal"``, ``"truncated"``, ``"xavier"``, ``"zero"``, a distribution, or a
            mapping from matrices (``"query"``, ``"key"``, ``"value"``, ``"output"``, ``"mlp_in"``, ``"mlp_gate"``,
            ``"mlp_out"``) to these. Queries are zero under given attention unless they are named.
        gradients: whether squared gradient norms of all weights are measured, of the loss ``⟨R, X_L⟩``.
        keep: the depths whose kernels are returned.
        dtype: float32 or float64.
        precision: ``"highest"``, or ``"fast"``: products in whatever the device does fastest (TF32 on a GPU).
        cotangent: ``G_L``, the kernel of ``R``: None or ``"all"`` for the identity, ``R`` of independent N(0, 1);
            ``"last"``, ``"mean"``, or a kernel ``(T, T)``.
        samples: whether single draws' scalars are kept too, for quantiles.
        progress: called as ``progress(done, total, seconds)`` after every chunk of draws.
        checkpoint: a file that holds the draws done so far; an existing one is gone on with, also with more draws.

    Returns:
        an `Ensemble`. Interrupted (Ctrl-C) with two draws or more done, it returns those, and says so in its notes.

    Raises:
        ValueError: for what doesn't fit, naming it, and what doesn't fit in memory.

    >>> import kernelprop as kp
    >>> model = kp.Transformer(kp.uniform(4))
    >>> found = simulate(model, kp.kernels.identity(4), width=8, draws=4, key=0, weights="orthogonal")
    >>> found.kernels.mean[0, 0, :2].round(6)
    array([0.25, 0.25])
    """
    float_type = float_dtype(dtype)
    if precision not in PRECISIONS:
        raise ValueError(f"precision: {precision!r} is unknown; use 'highest' or 'fast'")
    draws = door.count(draws, "draws", least=2)
    root = keys.describe(keys.root_key(key))
    net = network(model, width, heads=heads, head_width=head_width, weights=weights, gradients=gradients)
    fed = (
        network_input(model, kernel0, inputs, width),
        position_factor(model),
        cotangent_factor(cotangent, model.length),
    )
    kept = kept_depths(keep, model.depth, model.length, float_type.itemsize)
    plan = make_plan(net, len(kept.depths), draws, gradients=gradients, itemsize=float_type.itemsize)
    run = experiment(net, fed, kept, gradients=gradients, keep_weights=plan.keep_weights, dtype=float_type.name)
    settings = _settings(model, net, run, kept, root, precision)
    state = Progress(settings | {"samples": samples}, checkpoint)
    held = of_every_process(state.done)
    if len(set(held)) > 1:
        raise ValueError(
            f"checkpoint: {checkpoint} holds {held[0]:.0f} draws for process 0, and "
            f"{next(done for done in held if done != held[0]):.0f} for another; all must see one file"
        )
    if state.done > draws:
        raise ValueError(f"checkpoint: {checkpoint} holds {state.done} draws, more than the {draws} asked for")
    shapes = layout(run)
    # Scalars stand behind the kernels and the diagonals.
    keep_from = sum(prod(shapes[name]) for name in (("kernels", "diagonal") if samples else shapes))
    with jax.enable_x64(True), jax.default_matmul_precision(PRECISIONS[precision]):
        _run(as_numpy(run, float_type), root, plan, state, draws, keep_from, progress)
    return _ensemble(model, run, kept, state, draws, precision)


def as_numpy(tree: Any, dtype: np.dtype) -> Any:
    """Every floating-point array of a tree in one dtype, in numpy: what every process can hand to all devices."""

    def one(leaf: Any) -> np.ndarray:
        array = np.asarray(leaf)
        return array.astype(dtype) if array.dtype.kind == "f" else array

    return jax.tree.map(one, tree)


def _run(
    run: Experiment,
    root: np.ndarray,
    plan: Any,
    state: Progress,
    draws: int,
    keep_from: int,
    progress: Report | None,
) -> None:
    """Chunk after chunk until all draws are done, or the user interrupts."""
    started = time.monotonic()
    try:
        while state.done < draws:
            stop = min(state.done + plan.chunk, draws)
            found = chunks.run_chunk(run, root, state.done, stop, plan, keep_from)
            state.add(found.moments, found.draws)
            if progress is not None:
                progress(state.done, draws, time.monotonic() - started)
    except KeyboardInterrupt:
        if state.done < 2:
            raise
    finally:
        state.write()


def _settings(
    model: Transformer, net: Network, run: Experiment, kept: KeptDepths, root: np.ndarray, precision: str
) -> dict[str, Any]:
    """What makes a draw what it is: a checkpoint goes on only with the same."""
    return {
        "description": model,
        "sizes": tuple(net.sizes),
        "weights": net.families,
        "input": run.source,
        "cotangent": run.cotangent,
        "gradients": run.gradients,
        "keep": kept.depths,
        "dtype": run.dtype,
        "precision": precision,
        "key": root,
    }


def _ensemble(
    model: Transformer, run: Experiment, kept: KeptDepths, state: Progress, asked: int, precision: str
) -> Ensemble:
    assert state.moments is not None
    net, shapes = run.network, layout(run)
    errors = unpacked(state.moments.standard_error(), shapes)
    means = unpacked(state.moments.mean, shapes)
    found = {name: Estimate(mean, errors[name], state.done) for name, mean in means.items()}
    scalars = {name: shape for name, shape in shapes.items() if name not in ("kernels", "diagonal")}
    draws = state.draws()
    diagonal = found["diagonal"].mean
    healthy = (diagonal > 0) & np.isfinite(diagonal)
    # One draw's undefined number makes the mean NaN. A single position has no correlation in any draw.
    told = [name for name in SCALARS if name != "mean_correlation" or net.sizes.length > 1]
    norms = {name: found[name] for name in MATRICES if name in found}
    return Ensemble(
        depth=kept.depths,
        kernels=found["kernels"],
        diagonal=found["diagonal"],
        **{name: found[name] for name in SCALARS},
        undefined=~healthy.all(-1) | ~np.all([np.isfinite(found[name].mean) for name in told], axis=0),
        below_floor=found["rank_residual"].mean <= 16 * np.finfo(run.dtype).eps,
        width=net.sizes.width,
        heads=net.sizes.heads,
        head_width=net.sizes.head_width,
        draws=state.done,
        dtype=run.dtype,
        precision=precision,
        **norms,
        samples=unpacked(draws, scalars) if draws.shape[1] else None,
        description=model,
        notes=_notes(net, state.done, asked),
    )


def _notes(net: Network, done: int, asked: int) -> tuple[str, ...]:
    plain = isinstance(net.shared, PlainPattern) or isinstance(net.blocks.attention, PlainPattern)
    notes = {
        "the attention has no softmax form: applied as plain matrices, without queries and keys": plain,
        f"interrupted: {done} of {asked} draws": done < asked,
    }
    return tuple(text for text, holds in notes.items() if holds)
