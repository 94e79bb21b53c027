"""Stacks in neural-tangents, for `serving` in an interpreter of its own, which has no ``kernelprop``.

Positions are an axis of the inputs ``(T, 1, d)`` for attention that is given (DotGeneral), of ``(1, T, d)`` for its
own attention, and the batch where nothing mixes them.
"""

import jax
import jax.numpy as jnp
import numpy as np
from neural_tangents import stax  # pyright: ignore[reportAttributeAccessIssue, reportMissingImports]

AXES = {"batch_axis": 1, "channel_axis": 2}
NODES = 25  # What its documentation recommends for smooth activations.


def layer(job, matrix, factor):
    """One layer; the width of the inputs, which its scan wants."""
    width, gain = job["width"], factor * job["gain"]
    if job["stack"] == "tanh":
        return stax.serial(stax.Dense(width, W_std=gain), stax.ElementwiseNumerical(jnp.tanh, NODES))
    if job["stack"] == "mlp":
        return stax.serial(stax.Dense(width, W_std=gain), stax.Relu())
    if job["stack"] == "structured":
        return stax.GlobalSelfAttention(width, width, width, 1, W_value_std=factor, linear_scaling=True)
    if job["stack"] == "attention":
        return _mixing(factor * matrix)
    return stax.serial(_mixing(matrix), stax.Dense(width, W_std=gain, **AXES), stax.Relu())


def _mixing(matrix):
    return stax.DotGeneral(lhs=matrix, dimension_numbers=(((1,), (0,)), ((), ())), **AXES)


def prepare(job):
    """``run(factor)`` builds a stack once for every factor, as a user has to."""
    jax.config.update("jax_enable_x64", job["dtype"] == "float64")
    with np.load(job["arrays"]) as arrays:
        x, matrix = (arrays[name].astype(job["dtype"]) for name in ("inputs", "matrix"))
    place = {"tanh": (), "mlp": (), "structured": (None,)}.get(job["stack"], (slice(None), None))
    x, built = jnp.asarray(x[place] if place else x), {}

    def build(factor):
        one, depth = layer(job, jnp.asarray(matrix), factor), job["depth"]
        stack = stax.repeat(one, depth) if job["contender"] == "repeated" else stax.serial(*[one] * depth)
        kernel = stack[2]
        return jax.jit(lambda inputs: kernel(inputs, None, "nngp"))

    def run(factor):
        if factor not in built:
            built[factor] = build(factor)
        return np.asarray(built[factor](x)).reshape(len(matrix), len(matrix))

    jnp.zeros(1).block_until_ready()  # The backend's own start is nobody's.
    return run
