"""``python -m analysis.benchmarks.activations [--quick]``: what an MLP layer costs, in passes of ``T²`` arc-sines.

A pass is XLA's ``arcsin`` of a ``(T, T)`` array and nothing else. A layer is what a deeper network costs more: the time
of ``propagate`` at two depths, divided by the layers between them, so that the checks at the door, the first and the
last kernel don't count. The whole call at depth 1 stands beside it.
"""

import argparse
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import kernelprop as kp
from analysis.benchmarks.writing import RESULTS, environment, write_result

ACTIVATIONS = ("relu", "leaky_relu", "erf", "gelu", "sin", "tanh")
DEPTHS = (1, 5)
CLOCKS = {"wall": time.perf_counter, "processor": time.process_time}

Seconds = dict[str, float]


def least(contenders: dict[str, Callable[[], Any]], repeats: int) -> dict[str, Seconds]:
    """The least seconds of each contender, which take turns, by both clocks, after a round that compiles."""
    found: dict[str, list[Seconds]] = {name: [] for name in contenders}
    for measured in [False] + [True] * repeats:
        for name, run in contenders.items():
            start = {clock: read() for clock, read in CLOCKS.items()}
            jax.block_until_ready(run())
            if measured:
                found[name].append({clock: read() - start[clock] for clock, read in CLOCKS.items()})
    return {name: {clock: min(row[clock] for row in rows) for clock in CLOCKS} for name, rows in found.items()}


def arcsine_pass(correlations: np.ndarray, dtype: str) -> Callable[[], jax.Array]:
    """One pass over all entries."""
    with jax.enable_x64(True):
        values, one_pass = jnp.asarray(correlations, dtype), jax.jit(jnp.arcsin)

    def run() -> jax.Array:
        with jax.enable_x64(True):
            return one_pass(values)

    return run


def layer_costs(length: int, dtype: str, repeats: int, names: tuple[str, ...] = ACTIVATIONS) -> dict[str, Any]:
    """Nanoseconds an entry of the pass and of a layer with each activation, and their ratios."""
    kernel = kp.kernels.from_inputs(np.random.default_rng(0).normal(size=(length, length)))
    scale = np.sqrt(np.diagonal(kernel))
    contenders: dict[str, Callable[[], Any]] = {"pass": arcsine_pass(kernel / scale[:, None] / scale, dtype)}
    for name in names:
        for depth in DEPTHS:
            model = kp.Transformer(kp.identity(length), depth, kp.MLP(name))
            contenders[f"{name} {depth}"] = partial(kp.propagate, model, kernel, "last", dtype=dtype)
    seconds = least(contenders, repeats)
    base, (low, high) = seconds["pass"], DEPTHS
    layers = {
        name: {
            clock: (seconds[f"{name} {high}"][clock] - seconds[f"{name} {low}"][clock]) / (high - low) for clock in base
        }
        for name in names
    }
    return {
        "length": length,
        "dtype": dtype,
        "nanoseconds an entry": {name: per_entry(value, length) for name, value in {"pass": base, **layers}.items()},
        "layer / pass": {name: {clock: value[clock] / base[clock] for clock in base} for name, value in layers.items()},
        "whole call at depth 1 / pass": {
            name: {clock: seconds[f"{name} {low}"][clock] / base[clock] for clock in base} for name in names
        },
    }


def per_entry(seconds: Seconds, length: int) -> Seconds:
    return {clock: 1e9 * value / length**2 for clock, value in seconds.items()}


def show(row: dict[str, Any]) -> None:
    """Print one length's row."""
    cost = row["nanoseconds an entry"]["pass"]
    print(f"{row['dtype']} T = {row['length']}: a pass of arc-sines {cost['wall']:.1f} ns an entry")
    for name, ratio in row["layer / pass"].items():
        whole = row["whole call at depth 1 / pass"][name]
        print(
            f"  {name}: a layer {ratio['wall']:.2f} passes ({ratio['processor']:.2f} of processor time); "
            f"the whole call at depth 1 {whole['wall']:.1f}",
            flush=True,
        )


def main() -> None:
    """Measure, and write the result whole."""
    parser = argparse.ArgumentParser(prog="python -m analysis.benchmarks.activations", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="T = 512")
    quick = parser.parse_args().quick
    rows = []
    for dtype in ("float64", "float32"):
        rows.append(layer_costs(512 if quick else 2048, dtype, 5))
        show(rows[-1])
    path = RESULTS / ("activations-quick.json" if quick else "activations.json")
    print(f"written to {write_result(path, {'environment': environment(), 'layers': rows})}")


if __name__ == "__main__":
    main()
