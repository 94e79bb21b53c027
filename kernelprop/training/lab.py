"""A run set up: all that it needs and that stays as it is."""

import os
from typing import Any, NamedTuple

import numpy as np

from kernelprop.architecture import Transformer
from kernelprop.finite.network import Network, network
from kernelprop.finite.simulation import as_numpy
from kernelprop.training import trainables
from kernelprop.training.data.source import Batch, Source, generator
from kernelprop.training.demand import refuse_if_too_large
from kernelprop.training.metrics import validation_batches
from kernelprop.training.parameters import Parameters, Start, initial
from kernelprop.training.recipe import Recipe, Watch

# The number of the batch whose sequences are followed: one that no validation loss is taken of.
PROBE = 2**31


class Plan(NamedTuple):
    """What was asked for, checked."""

    model: Transformer
    source: Source
    width: int
    heads: int | None
    head_width: int | None
    weights: Any
    trainable: tuple[str, ...] | None
    start: Start
    recipe: Recipe
    watch: Watch
    seed: int
    dtype: np.dtype
    precision: str


class Lab(NamedTuple):
    """The network at its width, the data of measurements, and where the run is kept.

    ``names`` are the arrays of the description that are trained; ``settings`` what makes the run this one.
    """

    plan: Plan
    net: Network
    names: tuple[str, ...]
    validation: list[Batch]
    probe: np.ndarray
    path: str | os.PathLike[str] | None
    settings: dict[str, Any]

    def batch(self, step: int) -> Batch:
        """What a step is made on."""
        plan = self.plan
        random = generator("training", plan.seed, step)
        return plan.source.batch(plan.model.length, plan.recipe.batch, random, "training")

    def initial(self) -> Parameters:
        """The trained arrays in front of the first step."""
        plan = self.plan
        vocabulary, dtype = plan.source.vocabulary, plan.dtype.name
        return initial(self.net, plan.model, vocabulary, self.names, plan.start, plan.seed, dtype)


def set_up(plan: Plan, path: str | os.PathLike[str] | None) -> Lab:
    """Make the network and the batches.

    Raises:
        ValueError: where data and length don't fit, for sizes and names that don't, and for too little memory.
    """
    model, source, watch = plan.model, plan.source, plan.watch
    source.check(model.length)
    bare = network(
        model, plan.width, heads=plan.heads, head_width=plan.head_width, weights=plan.weights, gradients=True
    )
    groups = trainables.default_groups(bare) if plan.trainable is None else plan.trainable
    names = trainables.trained_names(bare, groups)
    net = as_numpy(trainables.prepared(bare, names), plan.dtype)
    refuse_if_too_large(net, source.vocabulary, plan.recipe.batch, plan.dtype.itemsize)
    probe = source.batch(model.length, watch.probe, generator("validation", 0, PROBE), "validation")
    return Lab(
        plan=plan,
        net=net,
        names=names,
        validation=validation_batches(source, model.length, plan.recipe.batch, max(watch.batches, watch.final)),
        probe=probe.tokens,
        path=path,
        settings=_settings(plan, net, names),
    )


def _settings(plan: Plan, net: Network, names: tuple[str, ...]) -> dict[str, Any]:
    return {
        "description": plan.model,
        "data": plan.source.settings(),
        "sizes": tuple(net.sizes),
        "weights": net.families,
        "trainable": names,
        "start": tuple(plan.start),
        "recipe": plan.recipe,
        "watch": plan.watch,
        "seed": plan.seed,
        "dtype": plan.dtype.name,
        "precision": plan.precision,
    }
