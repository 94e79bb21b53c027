"""What a layer costs: structured and dense attention against two matrix products, and what building costs."""

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

import kernelprop as kp
from analysis.benchmarks.timing import medians

DEEPER = 4
WINDOWS = 32


def layer_costs(length: int, depth: int, dtype: str, repeats: int) -> dict[str, Any]:
    """Milliseconds a layer of two products, of the dense scan and of structured ones, and their ratios.

    Structured networks are deeper, so that their first and last kernel weigh no more than those of the dense one.
    """
    rng = np.random.default_rng(0)
    matrix = rng.random((length, length)) / length
    structured = attentions(length, DEEPER * depth)
    models = {"dense": kp.Transformer(kp.dense(matrix), depth)}
    models |= {name: kp.Transformer(attention, DEEPER * depth) for name, attention in structured.items()}
    contenders: dict[str, Callable[[], Any]] = {"two products": two_products(matrix, depth, dtype)}
    for name, model in models.items():
        contenders[name] = partial(propagate, model, dtype)
    contenders["one pass"] = one_pass(length, depth, dtype)
    depths = {name: model.depth for name, model in models.items()} | {"two products": depth, "one pass": depth}
    milliseconds = {name: 1e3 * value / depths[name] for name, value in medians(contenders, repeats).items()}
    return {
        "length": length,
        "depth": depth,
        "dtype": dtype,
        "milliseconds a layer": milliseconds,
        "dense / two products": milliseconds["dense"] / milliseconds["two products"],
        "dense / espa": milliseconds["dense"] / milliseconds["espa"],
        "two products / espa": milliseconds["two products"] / milliseconds["espa"],
        "two products / structured": {name: milliseconds["two products"] / milliseconds[name] for name in structured},
        # The fewest bytes that a layer can move: every entry read once and written once.
        "espa, share of the bandwidth": milliseconds["one pass"] / milliseconds["espa"],
        "floors": {name: floor(name, length, milliseconds) for name in models},
    }


def attentions(length: int, depth: int) -> dict[str, Any]:
    """One attention of every structure."""
    causal, window = kp.uniform(length, causal=True), kp.sliding_window(length, length // WINDOWS)
    return {
        "espa": kp.espa(length, depth),
        "uspa": kp.uspa(length, depth),
        "uniform": kp.uniform(length),
        "causal uniform": causal,
        "sliding window": window,
        "mixture": kp.mix(causal, 0.8, 0.2),
        "mixture of a window": kp.mix(window, 0.8, 0.2),
        "two sequences": kp.block_diagonal(kp.uniform(length // 2, causal=True), 2),
    }


def floor(name: str, length: int, milliseconds: dict[str, float]) -> dict[str, float]:
    """The least milliseconds that a layer's operations and its bytes take at the measured rates, and the gap left.

    Operations: two products if dense; a scan over rows and one over columns, a product and a sum an entry and a rank
    and two on the diagonal, if structured (a window takes one sum in and one out). Bytes: one pass.
    """
    products = 4 * length**3
    rank = 2 if name == "uspa" else 1
    operations = products if name == "dense" else 2 * length**2 * (4 * rank + 2)
    computed = operations / products * milliseconds["two products"]
    least = max(computed, milliseconds["one pass"])
    return {"operations": computed, "bytes": milliseconds["one pass"], "gap": milliseconds[name] / least}


def propagate(model: kp.Transformer, dtype: str) -> np.ndarray:
    """The whole job as a user runs it, from the identity kernel to the last one."""
    return kp.propagate(model, kp.kernels.identity(model.length), "last", dtype=dtype).kernels


def two_products(matrix: np.ndarray, depth: int, dtype: str) -> Callable[[], jax.Array]:
    """``A Σ Aᵀ`` in a scan with nothing around it: the floor of dense attention."""
    with jax.enable_x64(True):
        a, s = jnp.asarray(matrix, dtype), jnp.eye(len(matrix), dtype=dtype)

    def product(x: jax.Array, y: jax.Array) -> jax.Array:
        return jnp.matmul(x, y, precision=lax.Precision.HIGHEST)

    @jax.jit
    def loop(a: jax.Array, s: jax.Array) -> jax.Array:
        return lax.scan(lambda k, _: (product(product(a, k), a.T), None), s, None, length=depth)[0]

    def run() -> jax.Array:
        with jax.enable_x64(True):
            return loop(a, s)

    return run


def one_pass(length: int, depth: int, dtype: str) -> Callable[[], jax.Array]:
    """Read and write every entry of a kernel, ``depth`` times: what the memory allows."""
    with jax.enable_x64(True):
        kernel = jnp.ones((length, length), dtype)

    @jax.jit
    def loop(s: jax.Array) -> jax.Array:
        return lax.fori_loop(0, depth, lambda _, x: lax.optimization_barrier(x + 1), s)

    def run() -> jax.Array:
        with jax.enable_x64(True):
            return loop(kernel)

    return run


def building_costs(length: int, depths: tuple[int, ...], repeats: int) -> dict[str, Any]:
    """Seconds that the first run takes beyond the second, at several depths: a scan's don't grow."""
    seconds = {}
    for depth in depths:
        times = []
        for _ in range(repeats):
            jax.clear_caches()
            model = kp.Transformer(kp.espa(length, depth))
            start = time.perf_counter()
            propagate(model, "float64")
            first = time.perf_counter() - start
            start = time.perf_counter()
            propagate(model, "float64")
            times.append(first - (time.perf_counter() - start))
        seconds[depth] = float(np.median(times))
    return {"length": length, "seconds": seconds, "ratio": seconds[depths[-1]] / seconds[depths[0]]}


def single_precision_error(length: int, depth: int) -> dict[str, Any]:
    """The largest difference of float32 from float64 through the default E-SPA schedule."""
    model = kp.Transformer(kp.espa(length, depth))
    kernels = [kp.propagate(model, np.eye(length), "last", dtype=dtype).kernels for dtype in ("float32", "float64")]
    return {"length": length, "depth": depth, "largest difference": float(np.abs(kernels[0] - kernels[1]).max())}
