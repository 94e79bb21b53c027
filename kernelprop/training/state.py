"""Where a run stands, and the step that takes it on."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float

from kernelprop.finite.network import Network
from kernelprop.training.data.source import Batch
from kernelprop.training.loss import batch_loss
from kernelprop.training.optimiser import direction, learning_rates, without_schedule
from kernelprop.training.parameters import Parameters
from kernelprop.training.recipe import Recipe


class State(NamedTuple):
    """The trained arrays and the optimiser's memory after ``done`` steps."""

    done: int
    parameters: Parameters
    memory: Any


class Step(NamedTuple):
    """What a step gave: the next state, the loss before it, and squared gradient norms by kind of weight."""

    state: State
    loss: Float[Array, ""]
    norms: dict[str, Float[Array, "..."]]


def fresh(parameters: Parameters, recipe: Recipe) -> State:
    """The state in front of the first step."""
    tree: Any = parameters
    return State(0, parameters, direction(recipe).init(tree))


def advance(net: Network, recipe: Recipe, state: State, batch: Batch) -> Step:
    """One step; the old state is left as it is, to go back to when the new one is no good."""
    rate = jnp.asarray(learning_rates(recipe)(state.done), state.parameters.readout.dtype)
    found = _advance(net, without_schedule(recipe), rate, state.parameters, state.memory, batch)
    parameters, memory, loss, norms = found
    return Step(State(state.done + 1, parameters, memory), loss, norms)


@eqx.filter_jit
def _advance(net: Network, recipe: Recipe, rate: Array, parameters: Parameters, memory: Any, batch: Batch) -> tuple:
    loss, gradients = jax.value_and_grad(batch_loss)(parameters, net, batch)
    where: Any = direction(recipe).update(gradients, memory, parameters)  # pyright: ignore[reportArgumentType]
    updates, memory = where
    moved = optax.apply_updates(parameters, jax.tree.map(lambda u: -rate * u, updates))  # pyright: ignore
    return moved, memory, loss, gradient_norms(gradients)


def gradient_norms(gradients: Parameters) -> dict[str, Float[Array, "..."]]:
    """``‖∂loss/∂W‖²_F`` by kind of weight: ``(L,)`` for what every layer has, one number for the rest."""
    layered = gradients.weights | gradients.numbers
    norms = {name: jnp.sum(g**2, axis=tuple(range(1, g.ndim))) for name, g in layered.items()}
    single = {"embedding": gradients.embedding, "positions": gradients.positions, "readout": gradients.readout}
    return norms | {name: jnp.sum(g**2) for name, g in single.items() if g is not None}
