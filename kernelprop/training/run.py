"""``train``: a description, data, and a recipe become a training run."""

import os
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, Literal

import jax
import numpy as np

from kernelprop import door
from kernelprop.architecture import Transformer
from kernelprop.finite import keys
from kernelprop.finite.network import Network
from kernelprop.finite.simulation import PRECISIONS
from kernelprop.precision import float_dtype
from kernelprop.results import Estimate
from kernelprop.training import checkpoint as checkpoints
from kernelprop.training.data.source import Source
from kernelprop.training.history import History
from kernelprop.training.lab import Lab, Plan, set_up
from kernelprop.training.loop import Now, run_to_the_end
from kernelprop.training.metrics import validation_loss
from kernelprop.training.parameters import READOUTS, Readout, Start, count
from kernelprop.training.recipe import Recipe, Watch
from kernelprop.training.result import TrainingRun
from kernelprop.training.state import fresh


def train(
    model: Transformer,
    data: Source,
    *,
    width: int,
    heads: int | None = None,
    head_width: int | None = None,
    weights: Any = "orthogonal",
    trainable: tuple[str, ...] | None = None,
    embedding_scale: float = 1.0,
    readout: Readout = "zero",
    recipe: Recipe | None = None,
    watch: Watch | None = None,
    seed: int = 0,
    dtype: Any = "float32",
    precision: Literal["highest", "fast"] = "highest",
    checkpoint: str | os.PathLike[str] | None = None,
    progress: Callable[[Now], None] | None = None,
) -> TrainingRun:
    """Train the finite network of a description, the one that ``simulate`` samples, between embedding and readout.

    Token ids are embedded by a trained table of independent normal rows, to which trained positions are added where
    the description has ``positions`` (their kernel is that of the start); the readout is a trained matrix without a
    bias; the loss is the mean cross-entropy over the positions that count. Draw 0 of ``simulate`` with the same key
    has the same weights, embeddings and positions.

    Args:
        model: the network.
        data: a source of `kernelprop.training`, such as ``markov()`` or ``corpus("book.txt")``.
        width: ``d``.
        heads: ``H``; that of the attention, or 1, by default.
        head_width: ``d_k``; ``d/H`` by default.
        weights: distributions of the weights, as for ``simulate``; queries are zero under given attention.
        trainable: what of the description is trained beside weights: ``"bias"`` and ``"rescale"`` (``B`` and ``D`` of
            every layer's attention), ``"mix"`` (Value-SkipInit's α and β), ``"skip"`` and ``"branch"`` (the residual
            weights α and β). ``"mix"`` where the attention has a skip of the values, if not given.
        embedding_scale: standard deviation of the embeddings' entries.
        readout: ``"zero"``, or ``"gaussian"`` of variance ``1/d``.
        recipe: the optimiser and its schedule.
        watch: what is measured, and how often.
        seed: of weights and batches, ``0…2³²−1``.
        dtype: float32 or float64.
        precision: ``"highest"``, or ``"fast"``: products in whatever the device does fastest (TF32 on a GPU).
        checkpoint: a file that holds the run so far; an existing one is gone on with, to the same numbers. The state
            in it is one whose loss was finite.
        progress: called with a `Now` after every step.

    Returns:
        a `TrainingRun`.

    Raises:
        Diverged: a ``ValueError``: the loss is not finite; with the step and the layer where it shows first.
        ValueError: for what doesn't fit: data and length, a checkpoint of another run, sizes, memory.

    >>> import kernelprop as kp
    >>> train(kp.Transformer(kp.uniform(4, causal=True)), kp.training.copy_back(lag=4), width=8)
    Traceback (most recent call last):
    ValueError: copy: a lag of 4 does not fit 4 positions; it must be below them
    """
    plan = Plan(
        model=model,
        source=_source(data),
        width=width,
        heads=heads,
        head_width=head_width,
        weights=weights,
        trainable=None if trainable is None else tuple(trainable),
        start=Start(_positive(embedding_scale, "embedding_scale"), _readout(readout)),
        recipe=Recipe() if recipe is None else recipe,
        watch=Watch() if watch is None else watch,
        seed=_seed(seed),
        dtype=float_dtype(dtype),
        precision=_precision(precision),
    )
    lab = set_up(plan, checkpoint)
    stored = checkpoints.read(checkpoint, lab.settings)
    with ExitStack() as scope:
        if plan.dtype.itemsize == 8:
            scope.enter_context(jax.enable_x64(True))
        scope.enter_context(jax.default_matmul_precision(PRECISIONS[precision]))
        start = fresh(lab.initial(), plan.recipe)
        state, history = (start, History()) if stored is None else checkpoints.resume(stored, start)
        state = run_to_the_end(lab, state, history, progress)
        final = validation_loss(lab.net, state.parameters, lab.validation[: plan.watch.final])
        return _result(lab, history, final, count(state.parameters))


def _result(lab: Lab, history: History, final: Estimate, trained: int) -> TrainingRun:
    plan, sizes = lab.plan, lab.net.sizes
    means, errors = history.stacked("validation").T
    levels = plan.source.levels(sizes.length)
    return TrainingRun(
        loss=np.array(history.losses),
        done=history.stacked("done"),
        validation=Estimate(means, errors, plan.watch.batches),
        final=final,
        token_cosine=history.stacked("token_cosine"),
        kernels=history.stacked("kernel"),
        gradient_norms=history.stacked_by_name("norms"),
        scales=history.stacked_by_name("scales"),
        levels={name: float(value) for name, value in levels.items()},
        recipe=plan.recipe,
        data=plan.source.name,
        sizes={
            "width": sizes.width,
            "heads": sizes.heads,
            "head_width": sizes.head_width,
            "vocabulary": plan.source.vocabulary,
            "trained": trained,
        },
        seed=plan.seed,
        dtype=plan.dtype.name,
        seconds=history.seconds,
        description=plan.model,
        notes=_notes(lab.net),
    )


def _notes(net: Network) -> tuple[str, ...]:
    if "query" in net.names:
        return ()
    return ("the attention has no softmax form: its matrices stay as they are, without queries and keys",)


def _source(data: Any) -> Source:
    if not isinstance(data, Source):
        raise ValueError(f"data: a source of kernelprop.training is wanted, {data!r} was given")
    return data


def _positive(value: Any, name: str) -> float:
    number = door.real_number(value, name)
    if number <= 0:
        raise ValueError(f"{name}: {number:g} is not positive")
    return number


def _readout(name: str) -> Any:
    if name not in READOUTS:
        raise ValueError(f"readout: {name!r} is unknown; use {' or '.join(READOUTS)}")
    return name


def _precision(name: str) -> str:
    if name not in PRECISIONS:
        raise ValueError(f"precision: {name!r} is unknown; use 'highest' or 'fast'")
    return name


def _seed(value: Any) -> int:
    number = door.count(value, "seed", least=0)
    keys.root_key(number)
    return number
