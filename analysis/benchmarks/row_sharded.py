"""``python -m analysis.benchmarks.row_sharded [--quick]``: kernels spread by rows over devices.

On eight devices made of this machine's cores: that they find what one finds, what cutting costs where the cores are
the same, and what a device must hold, read off the compiled program, which needs no data and so can be asked at any
length. From these, what T = 131072 takes on eight GPUs, of the bandwidths that are given.
"""

import argparse
import os
from functools import partial
from typing import Any

from analysis.benchmarks.timing import medians
from analysis.benchmarks.writing import RESULTS, environment, write_result

DEVICES = 8
LARGE = 131_072


def agreement(length: int) -> float:
    """The largest difference of any number at any depth, over the largest of its kind, float64."""
    import numpy as np

    import kernelprop as kp

    model, kernel = network(length, 8), kp.kernels.equicorrelated(length, 0.2)
    spread, whole = kp.propagate_sharded(model, kernel), kp.propagate(model, kernel, "last")
    names = ("kernels", "diagonal", "mean_correlation", "rank_residual", "participation_ratio")
    pairs = [(getattr(spread, name), getattr(whole, name)) for name in names]
    return max(float(np.abs(a - b).max() / np.abs(b).max()) for a, b in pairs)


def network(length: int, depth: int, dense: bool = False) -> Any:
    """E-SPA, or one given matrix for all layers, and a GELU MLP."""
    import numpy as np

    import kernelprop as kp

    if dense:
        rows = np.random.default_rng(0).random((length, length), np.float32)
        return kp.Transformer(kp.dense(rows / rows.sum(-1, keepdims=True)), depth, mlp=kp.MLP("gelu"))
    return kp.Transformer(kp.espa(length, depth), mlp=kp.MLP("gelu"))


def seconds_a_layer(length: int, repeats: int) -> dict[str, float]:
    """On one device and on all of them, float32; the difference of two depths, so that ends don't count."""
    import jax

    import kernelprop as kp

    kernel = kp.kernels.equicorrelated(length, 0.2)
    runs = {}
    for depth in (2, 6):
        model = network(length, depth)
        runs[f"1:{depth}"] = partial(kp.propagate_sharded, model, kernel, jax.devices()[:1], "none", dtype="float32")
        runs[f"{DEVICES}:{depth}"] = partial(kp.propagate_sharded, model, kernel, None, "none", dtype="float32")
    found = medians(runs, repeats)
    return {name: (found[f"{name}:6"] - found[f"{name}:2"]) / 4 for name in ("1", str(DEVICES))}


def bytes_a_second(length: int, repeats: int) -> float:
    """What one elementwise pass over a matrix reads and writes, float32."""
    import jax
    import jax.numpy as jnp

    x = jnp.ones((length, length), jnp.float32)
    grow = jax.jit(lambda x: x + 1)
    return 8 * length**2 / medians({"pass": partial(grow, x)}, repeats)["pass"]


def held(length: int, dense: bool) -> dict[str, float]:
    """What one device holds, in matrices of its rows, ``4 T²/P`` bytes each."""
    from kernelprop.row_sharded.propagation import compiled, mesh_over

    analysis = compiled(network(length, 24, dense), mesh_over(length), "float32").memory_analysis()
    unit = 4 * length**2 / DEVICES
    return {"given": analysis.argument_size_in_bytes / unit, "working": analysis.temp_size_in_bytes / unit}


def estimate(options: argparse.Namespace, structured: dict, dense: dict, passes: float) -> dict[str, dict[str, float]]:
    """Memory, traffic and time a layer of a device, at `LARGE` positions."""
    rows = 4 * LARGE**2 / DEVICES
    # Rows are transposed once a layer; a given matrix goes round twice beside that.
    sent = {"structured": rows * (1 - 1 / DEVICES), "dense": rows * (1 - 1 / DEVICES) + 2 * rows * (DEVICES - 1)}
    work = {"structured": 0.0, "dense": 4 * LARGE**3 / DEVICES / (options.teraflops * 1e12)}
    memory = {"structured": sum(structured.values()), "dense": sum(dense.values())}
    return {
        kind: {
            "GiB a device": memory[kind] * rows / 2**30,
            "GiB sent a layer": sent[kind] / 2**30,
            "seconds moving memory": 2 * passes * rows / (options.memory_gigabytes * 1e9),
            "seconds sending": sent[kind] / (options.link_gigabytes * 1e9),
            "seconds multiplying": work[kind],
        }
        for kind in sent
    }


def main() -> None:
    """Measure, print, and write the result whole."""
    parser = argparse.ArgumentParser(prog="python -m analysis.benchmarks.row_sharded", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes")
    parser.add_argument("--memory-gigabytes", type=float, default=3350, help="a GPU's memory bandwidth, GB/s")
    parser.add_argument("--link-gigabytes", type=float, default=450, help="what a GPU sends to others, GB/s")
    parser.add_argument("--teraflops", type=float, default=67, help="a GPU's float32 rate")
    options = parser.parse_args()
    # Read when JAX first looks for devices.
    os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count={DEVICES}"
    started = environment()
    length = 512 if options.quick else 4096
    difference = agreement(256 if options.quick else 1024)
    print(f"{DEVICES} devices against one, float64: largest difference {difference:.2g} of the largest")
    seconds, bandwidth = seconds_a_layer(length, 3), bytes_a_second(length, 5)
    passes = seconds["1"] * bandwidth / (8 * length**2)
    cost = seconds[str(DEVICES)] / seconds["1"]
    print(f"T = {length}: {DEVICES} devices on the same cores take {cost:.2f} times as long as one", flush=True)
    print(f"a layer takes as long as {passes:.1f} passes over its matrix here")
    structured, dense = held(LARGE, False), held(512 if options.quick else 2048, True)
    found = estimate(options, structured, dense, passes)
    for kind, row in found.items():
        print(
            f"T = {LARGE}, {DEVICES} GPUs, {kind}: " + ", ".join(f"{name} {value:.3g}" for name, value in row.items())
        )
    result = {
        "environment": started,
        "devices": DEVICES,
        "largest difference, float64": difference,
        "length": length,
        "seconds a layer": seconds,
        "cutting": cost,
        "bytes a second of one pass": bandwidth,
        "passes a layer": passes,
        "held, structured": structured,
        "held, dense": dense,
        "assumed": {name: getattr(options, name) for name in ("memory_gigabytes", "link_gigabytes", "teraflops")},
        f"T = {LARGE}": found,
    }
    name = "row-sharded-quick.json" if options.quick else "row-sharded.json"
    print(f"written to {write_result(RESULTS / name, result)}")


if __name__ == "__main__":
    main()
