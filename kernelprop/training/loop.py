"""The loop of a run: step after step, measured on the way, stopped where the loss is not finite."""

import math
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from kernelprop.training import checkpoint, metrics
from kernelprop.training.data.source import Batch
from kernelprop.training.history import History
from kernelprop.training.lab import Lab
from kernelprop.training.state import State, advance

# Seconds between two writings of the checkpoint, so that short steps don't spend their time on the disk.
INTERVAL = 30.0


class Now(NamedTuple):
    """How far a run has come: what a progress callback is told after every step; NaN seconds while it compiles."""

    done: int
    steps: int
    loss: float
    validation: float
    seconds_left: float


class Diverged(ValueError):
    """The loss is not finite: of which step, and in which layer first (0 is the input, None the readout)."""

    def __init__(self, message: str, step: int, layer: int | None) -> None:
        super().__init__(message)
        self.step, self.layer = step, layer


def run_to_the_end(lab: Lab, state: State, history: History, progress: Callable[[Now], None] | None) -> State:
    """Make the steps that are left, and return the last state; ``history`` grows.

    The checkpoint holds the last state whose loss is known to be finite, also after an interrupt.

    Raises:
        Diverged: where a loss is not finite.
    """
    steps = lab.plan.recipe.steps
    wanted = set(lab.plan.watch.steps(steps))
    good, written = state, time.monotonic()
    clock = _Clock(history.seconds, state.done)
    try:
        while state.done < steps:
            following, loss, norms = _checked_step(lab, state, good)
            good = state
            if state.done in wanted and not history.measured(state.done):
                _measure(lab, state, history, norms)
            history.losses.append(loss)
            history.seconds = clock.seconds()
            state = following
            if time.monotonic() - written > INTERVAL:
                _keep(lab, good, history)
                written = time.monotonic()
            if progress is not None:
                validation = float(history.points[-1]["validation"][0])
                progress(Now(state.done, steps, loss, validation, clock.left(state.done, steps)))
        if not history.measured(state.done):
            # The gradients at the end are those of a step that is not made.
            _, _, norms = _checked_step(lab, state, good)
            good = state
            _measure(lab, state, history, norms)
            history.seconds = clock.seconds()
    finally:
        _keep(lab, good, history)
    return state


def _checked_step(lab: Lab, state: State, good: State) -> tuple[State, float, dict[str, Any]]:
    batch = lab.batch(state.done)
    step = advance(lab.net, lab.plan.recipe, state, batch)
    loss = float(step.loss)
    if not np.isfinite(loss):
        raise _diverged(lab, state, batch, loss, good)
    return step.state, loss, step.norms


def _measure(lab: Lab, state: State, history: History, norms: dict[str, Any]) -> None:
    validation = metrics.validation_loss(lab.net, state.parameters, lab.validation[: lab.plan.watch.batches])
    seen = metrics.look(lab.net, state.parameters, lab.probe)
    history.add(state.done, validation, seen, norms, state.parameters.numbers)


def _keep(lab: Lab, good: State, history: History) -> None:
    if lab.path is not None:
        checkpoint.write(lab.path, lab.settings, good, history)


def _diverged(lab: Lab, state: State, batch: Batch, loss: float, good: State) -> Diverged:
    layer = metrics.first_bad_layer(lab.net, state.parameters, batch)
    place = "the readout" if layer is None else "the input" if layer == 0 else f"layer {layer}"
    kept = "no checkpoint was asked for" if lab.path is None else f"{lab.path} keeps the state after {good.done} steps"
    message = (
        f"training: the loss of step {state.done + 1} is {loss}; {place} is the first that is not finite; {kept}; "
        "a lower learning rate may help"
    )
    return Diverged(message, state.done + 1, layer)


class _Clock:
    """Seconds spent, those of an earlier part included, and seconds left; the first step, which compiles, apart."""

    def __init__(self, before: float, done: int) -> None:
        self._before, self._start = before, time.monotonic()
        self._first = done + 1
        self._since: float | None = None

    def seconds(self) -> float:
        return self._before + time.monotonic() - self._start

    def left(self, done: int, steps: int) -> float:
        now = time.monotonic()
        if self._since is None:
            self._since = now
        made = done - self._first
        return (now - self._since) / made * (steps - done) if made > 0 else math.nan
