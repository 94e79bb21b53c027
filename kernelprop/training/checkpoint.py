"""A training run on disk: everything that the next step depends on, so that it goes on with the same numbers."""

import os
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from kernelprop import storage
from kernelprop.training.history import History
from kernelprop.training.state import State

KIND = "checkpoint of a training run"


class Resumed(NamedTuple):
    """A run read back."""

    state: State
    history: History


def write(path: str | os.PathLike[str], settings: dict[str, Any], state: State, history: History) -> None:
    """Write a state whose loss was good, whole or not at all."""
    arrays = [np.asarray(leaf) for leaf in jax.tree.leaves((state.parameters, state.memory))]
    seen = history.up_to(state.done)
    content = {
        "kind": KIND,
        "settings": settings,
        "done": state.done,
        "arrays": arrays,
        "losses": np.array(seen.losses),
        "points": seen.points,
        "seconds": seen.seconds,
    }
    storage.save(content, path)


def read(path: str | os.PathLike[str] | None, settings: dict[str, Any]) -> dict[str, Any] | None:
    """What a checkpoint of this very run holds; None where there is no file.

    Raises:
        ValueError: naming the file: for one that is no checkpoint of training, or of a run with other settings.
    """
    if path is None or not Path(path).exists():
        return None
    content = storage.load(path)
    if not isinstance(content, dict) or content.get("kind") != KIND:
        raise ValueError(f"checkpoint: {path} is no checkpoint of a training run")
    for name, value in settings.items():
        if not storage.equal(content["settings"].get(name), value):
            raise ValueError(f"checkpoint: {path} was made with another {name}; remove it to start anew")
    return content


def resume(content: dict[str, Any], start: State) -> Resumed:
    """The run that a checkpoint holds; ``start`` is a state of the same shapes.

    Raises:
        ValueError: where the shapes are others.
    """
    leaves, structure = jax.tree.flatten((start.parameters, start.memory))
    stored = content["arrays"]
    if [(np.shape(a), np.asarray(a).dtype) for a in leaves] != [(a.shape, a.dtype) for a in stored]:
        raise ValueError("checkpoint: it holds arrays of other shapes; it is from another version")
    parameters, memory = jax.tree.unflatten(structure, [jnp.asarray(array) for array in stored])
    history = History(content["losses"].tolist(), content["points"], content["seconds"])
    return Resumed(State(content["done"], parameters, memory), history)
