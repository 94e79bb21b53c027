"""The same stacks here, for `serving`: `kernelprop`, and what anyone would write without a library."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

import kernelprop as kp

Run = Callable[[float], np.ndarray]


def prepare(job: dict[str, Any]) -> Run:
    """``run(factor)`` of the contender that the job names."""
    # What loads at first use, and the backend's own start, are nobody's: a peer has imported all of it.
    assert all(map(callable, (kp.Transformer, kp.MLP, kp.dense, kp.espa, kp.identity, kp.propagate, kp.dks, kp.tat)))
    jnp.zeros(1).block_until_ready()
    if job["stack"] in ("dks", "tat"):
        return _solve(job)
    with np.load(job["arrays"]) as arrays:
        x, matrix = arrays["inputs"], arrays["matrix"]
    return CONTENDERS[job["contender"]](job, kp.kernels.from_inputs(x), matrix)


def _solve(job: dict[str, Any]) -> Run:
    def run(factor: float) -> np.ndarray:
        shaped = {"dks": kp.dks, "tat": kp.tat}[job["stack"]](job["activation"], job["depth"])
        with jax.enable_x64(True):
            return np.asarray(shaped(jnp.array(job["points"])))

    return run


def _kernelprop(job: dict[str, Any], kernel: np.ndarray, matrix: np.ndarray) -> Run:
    """The whole job as a user runs it: the network described, and all observables at every depth on the way."""

    def run(factor: float) -> np.ndarray:
        return kp.propagate(_network(job, matrix, factor), kernel, "last", dtype=job["dtype"]).kernels[0]

    return run


def _network(job: dict[str, Any], matrix: np.ndarray, factor: float) -> kp.Transformer:
    length, depth, gain = len(matrix), job["depth"], factor * job["gain"]
    if job["stack"] == "attention":
        return kp.Transformer(kp.dense(factor * matrix), depth)
    if job["stack"] == "structured":
        return kp.Transformer(kp.espa(length, depth, gamma=factor * 0.005))
    if job["stack"] == "block":
        return kp.Transformer(kp.dense(matrix), depth, kp.MLP("relu", gain_in=gain))
    activation = {"mlp": "relu", "tanh": "tanh"}[job["stack"]]
    return kp.Transformer(kp.identity(length), depth, kp.MLP(activation, gain_in=gain))


def _numpy_loop(job: dict[str, Any], kernel: np.ndarray, matrix: np.ndarray) -> Run:
    """A loop in numpy."""
    kernel, matrix = kernel.astype(job["dtype"]), matrix.astype(job["dtype"])
    layer, number = _layer(job, np, np.matmul), np.dtype(job["dtype"]).type

    def run(factor: float) -> np.ndarray:
        found = kernel
        for _ in range(job["depth"]):
            found = layer(found, matrix, number(factor))
        return found

    return run


def _scan_loop(job: dict[str, Any], kernel: np.ndarray, matrix: np.ndarray) -> Run:
    """A scan in JAX, the arc-cosine by its textbook formula; nothing is checked and nothing observed."""
    return _scanned(job, _layer(job, jnp, _product), kernel, matrix)


def _two_products(job: dict[str, Any], kernel: np.ndarray, matrix: np.ndarray) -> Run:
    """``A Σ Aᵀ`` and nothing else: the floor of dense attention."""
    return _scanned(job, lambda found, matrix, factor: _product(_product(matrix, found), matrix.T), kernel, matrix)


def _layer(job: dict[str, Any], xp: Any, product: Callable[..., Any]) -> Callable[..., Any]:
    def attention(found: Any, matrix: Any, factor: Any) -> Any:
        return factor**2 * product(product(matrix, found), matrix.T)

    def block(found: Any, matrix: Any, factor: Any) -> Any:
        return factor**2 * job["gain"] ** 2 * _relu(xp, product(product(matrix, found), matrix.T))

    def mlp(found: Any, matrix: Any, factor: Any) -> Any:
        return factor**2 * job["gain"] ** 2 * _relu(xp, found)

    return {"attention": attention, "block": block, "mlp": mlp}[job["stack"]]


def _scanned(job: dict[str, Any], layer: Callable[..., Any], kernel: np.ndarray, matrix: np.ndarray) -> Run:
    @jax.jit
    def loop(kernel: jax.Array, matrix: jax.Array, factor: jax.Array) -> jax.Array:
        return lax.scan(lambda found, _: (layer(found, matrix, factor), None), kernel, length=job["depth"])[0]

    def run(factor: float) -> np.ndarray:
        with jax.enable_x64(True):
            return np.asarray(loop(*(jnp.asarray(value, job["dtype"]) for value in (kernel, matrix, factor))))

    return run


def _relu(xp: Any, kernel: Any) -> Any:
    """``E[φ(u)φ(v)]`` of the ReLU (Cho and Saul 2009), without any care."""
    scale = xp.sqrt(xp.diagonal(kernel))
    scales = scale[:, None] * scale[None, :]
    c = xp.clip(kernel / scales, -1, 1)
    return scales * (xp.sqrt(1 - c**2) + (xp.pi - xp.arccos(c)) * c) / (2 * xp.pi)


def _product(left: jax.Array, right: jax.Array) -> jax.Array:
    return jnp.matmul(left, right, precision=lax.Precision.HIGHEST)


CONTENDERS: dict[str, Callable[[dict[str, Any], np.ndarray, np.ndarray], Run]] = {
    "kernelprop": _kernelprop,
    "numpy": _numpy_loop,
    "scan loop": _scan_loop,
    "two products": _two_products,
}
