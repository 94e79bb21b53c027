"""How a network is trained and what is watched: the numbers of a run, checked when they are made."""

from dataclasses import dataclass
from typing import Literal

from kernelprop import door

OPTIMISERS = ("adamw", "sgd")


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """The optimiser and its schedule.

    The learning rate rises linearly from ``learning_rate/warmup`` to ``learning_rate`` in ``warmup`` steps, then falls
    as a half cosine to ``floor`` times it at the last step.

    Attributes:
        steps: the number of steps.
        batch: sequences a step.
        optimiser: ``"adamw"``, or ``"sgd"`` with momentum.
        learning_rate: at its highest.
        warmup: steps.
        floor: the share of the learning rate that is left at the end.
        clip: the largest norm of the whole gradient; None for no limit.
        weight_decay: of matrices, embeddings and readout, decoupled; not of biases and scales.
        betas: of AdamW.
        epsilon: of AdamW.
        momentum: of SGD.

    >>> Recipe(steps=10, warmup=20)
    Traceback (most recent call last):
    ValueError: recipe: warmup of 20 steps does not fit 10 steps
    """

    steps: int = 300
    batch: int = 16
    optimiser: Literal["adamw", "sgd"] = "adamw"
    learning_rate: float = 1e-3
    warmup: int = 50
    floor: float = 0.1
    clip: float | None = 1.0
    weight_decay: float = 0.0
    betas: tuple[float, float] = (0.9, 0.98)
    epsilon: float = 1e-8
    momentum: float = 0.9

    def __post_init__(self) -> None:
        door.count(self.steps, "recipe: steps")
        door.count(self.batch, "recipe: batch")
        door.count(self.warmup, "recipe: warmup", least=0)
        if self.optimiser not in OPTIMISERS:
            raise ValueError(f"recipe: optimiser {self.optimiser!r} is unknown; use {' or '.join(OPTIMISERS)}")
        if self.warmup >= self.steps and self.warmup:
            raise ValueError(f"recipe: warmup of {self.warmup} steps does not fit {self.steps} steps")
        _above(self.learning_rate, "learning_rate")
        _above(self.epsilon, "epsilon")
        if self.clip is not None:
            _above(self.clip, "clip")
        _share(self.floor, "floor", closed=True)
        _share(self.momentum, "momentum")
        if len(self.betas) != 2:
            raise ValueError(f"recipe: betas are two numbers, {self.betas!r} was given")
        for beta in self.betas:
            _share(beta, "betas")
        if door.real_number(self.weight_decay, "recipe: weight_decay") < 0:
            raise ValueError(f"recipe: weight_decay is {self.weight_decay:g}; it can't be negative")


@dataclass(frozen=True, kw_only=True)
class Watch:
    """What is measured during a run, and how often.

    Attributes:
        points: how often, evenly over the run, first and last step included.
        batches: batches of the validation loss at each point; always the same ones.
        final: batches of the validation loss at the end.
        probe: sequences whose kernel and token cosines are followed.
    """

    points: int = 11
    batches: int = 4
    final: int = 32
    probe: int = 8

    def __post_init__(self) -> None:
        for name in ("points", "batches", "final"):
            door.count(getattr(self, name), f"watch: {name}", least=2)
        door.count(self.probe, "watch: probe")

    def steps(self, total: int) -> list[int]:
        """The numbers of steps done at which is measured, ``0 … total``.

        >>> Watch(points=3).steps(10)
        [0, 5, 10]
        """
        return sorted({round(i * total / (self.points - 1)) for i in range(self.points)})


def _above(value: float, name: str) -> None:
    if door.real_number(value, f"recipe: {name}") <= 0:
        raise ValueError(f"recipe: {name} is {value:g}; it must be positive")


def _share(value: float, name: str, *, closed: bool = False) -> None:
    number = door.real_number(value, f"recipe: {name}")
    if not (0 <= number < 1 or (closed and number == 1)):
        raise ValueError(f"recipe: {name} is {number:g}; it lies between 0 and 1")
