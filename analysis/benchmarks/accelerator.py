"""``python -m analysis.benchmarks.accelerator [--size accelerator|cpu|small] [--output FILE]``.

What the sampled networks do on the device at hand, in under eight minutes: agreement with the infinite-width engine,
digits of the products, speed beside a measured matrix-product rate, the drawing of weights, memory. One JSON. Targets:
half the product rate without drawing, 35 % with it, at 1,024 rows and the widths 1024 on a processor and 4096 on an
accelerator; 3 GiB for all gradient norms of 1,000 layers of width 512 with 64 positions.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import kernelprop as kp
from analysis.benchmarks.timing import medians
from analysis.benchmarks.writing import RESULTS, environment, write_result
from kernelprop.finite import inputs, keys, threefry
from kernelprop.finite.comparison import compare
from kernelprop.finite.draw import experiment, one_draw
from kernelprop.finite.network import all_weights, cast, forward, network
from kernelprop.finite.orthogonal import haar
from kernelprop.finite.plan import draw_operations, layer_parameters
from kernelprop.finite.reverse import gradient_norms
from kernelprop.finite.simulation import simulate
from kernelprop.kept_depths import kept_depths

F32 = jnp.dtype("float32")


class Size(NamedTuple):
    """How large everything is."""

    agreement: tuple[int, int]  # width, draws
    speed: tuple[int, int, int]  # width, layers, rows
    few_rows: tuple[int, int, int]  # the same, where the drawing of weights weighs most
    depths: tuple[int, ...]  # layers, at width 256
    memory: tuple[int, int, int]  # layers, width, positions
    repeats: int


SIZES = {
    "accelerator": Size((4096, 64), (4096, 12, 1024), (4096, 4, 128), (32, 64, 128), (1000, 512, 64), 3),
    "cpu": Size((1024, 32), (1024, 24, 1024), (1024, 8, 128), (16, 32, 64), (1000, 512, 64), 3),
    "small": Size((64, 16), (32, 2, 16), (32, 2, 8), (2, 4, 8), (16, 32, 8), 1),
}


def block_model(length: int, depth: int) -> kp.Transformer:
    """A Pre-LN transformer with skips, every weight of which takes part."""
    return kp.Transformer(
        kp.espa(length, depth),
        mlp=kp.MLP("gelu", expansion=4),
        residual=kp.Residual(attention=(0.8, 0.6), mlp=(0.8, 0.6)),
        norm="pre",
    )


def agreement(width: int, draws: int) -> dict[str, Any]:
    """Largest |z| between prediction and measurement, by name, and the standard errors behind them."""
    length = 16
    model = kp.Transformer(
        kp.espa(length, 4, gamma=0.1),
        mlp=kp.MLP("relu", expansion=2),
        residual=kp.Residual(attention=(0.8, 0.6), mlp=(0.8, 0.6)),
    )
    found = compare(model, 0.7 * np.eye(length) + 0.3, widths=(width,), draws=draws, key=0, gradients=True)
    # The query row is first order where something above it isn't linear: tens of per cent, whatever the width.
    names = [name for name in found.predicted if name not in ("query", "key")]
    largest = {name: float(np.abs(found.z(name)).max()) for name in names}
    relative = {name: float((found.stderr(name) / np.abs(found.predicted[name]).max()).max()) for name in names}
    query = found.measured["query"][0] / found.predicted["query"]
    return {"width": width, "draws": draws, "largest z": largest, "stderr": relative, "query ratio": query.tolist()}


def digits() -> dict[str, float]:
    """``x·x/n``, ``x_k = 1 + 2⁻¹²``, n = 1024: 1.000488340854645; products of reduced precision give 1."""
    example = np.full((8, 1024), 1 + 2.0**-12)
    model = kp.Transformer(kp.identity(8))

    def value(precision: Any) -> float:
        found = simulate(model, inputs=example, width=1024, draws=2, key=0, keep=0, precision=precision)
        return float(found.kernels.mean[0, 0, 0])

    return {"exact": (1 + 2.0**-12) ** 2, "highest": value("highest"), "fast": value("fast")}


def speed(width: int, depth: int, rows: int, repeats: int) -> dict[str, Any]:
    """Forward pass and all gradient norms, with and without the drawing of weights, beside the rate of products.

    The rate counts the products of the forward pass, its recomputation, the cotangents and the norms, as
    multiplications and additions; nothing else.
    """
    net = cast(network(block_model(rows, depth), width, gradients=True), F32)
    draw = keys.draw_key(keys.root_key(0), 0)
    draw_all = jax.jit(partial(all_weights, net, dtype=F32))
    weights = ready(draw_all, draw)
    x, loss = (threefry.normal(jax.random.fold_in(draw, tag), (rows, width), F32) for tag in (1, 3))

    @jax.jit
    def without_drawing(weights: Any, x: jax.Array, loss: jax.Array) -> Any:
        _, _, trace = forward(net, x, weights, keep_inputs=True)
        assert trace.inputs is not None
        return gradient_norms(net, weights, trace.inputs, loss)

    run = experiment(
        net,
        (inputs.Given(x), None, None),
        kept_depths("last", depth, rows, 4),
        gradients=True,
        keep_weights=depth * layer_parameters(net) * 4 < 2**31,
        dtype="float32",
    )
    run = cast(run, F32)
    whole = jax.jit(one_draw)
    seconds = medians(
        {
            "products": partial(ready, product_chain(rows, width), x, weights["mlp_in"][0], weights["mlp_out"][0]),
            "drawing": partial(ready, draw_all, draw),
            "without drawing": partial(ready, without_drawing, weights, x, loss),
            "with drawing": partial(ready, whole, run, draw),
        },
        repeats,
    )
    rate = CHAIN * 2 * 2 * rows * width * 4 * width / seconds["products"]
    operations = draw_operations(net, gradients=True)
    return {
        "width": width,
        "layers": depth,
        "rows": rows,
        "product rate, GFLOP/s": rate / 1e9,
        "seconds": seconds,
        "seconds a layer": {
            "products": seconds["without drawing"] / depth,
            "drawing": seconds["drawing"] / depth,
        },
        "share of the product rate": {
            name: operations / seconds[name] / rate for name in ("without drawing", "with drawing")
        },
        "weights drawn": "once" if run.keep_weights else "twice",
    }


CHAIN = 4


def product_chain(rows: int, width: int) -> Callable:
    """The products of an MLP and nothing else, one after the other."""

    @jax.jit
    def chain(x: jax.Array, inward: jax.Array, outward: jax.Array) -> jax.Array:
        for _ in range(CHAIN):
            x = (x @ inward) @ outward
        return x

    return chain


def ready(function: Callable, *arguments: Any) -> Any:
    """A call that ends when its result is there."""
    return jax.block_until_ready(function(*arguments))


def drawing(width: int, repeats: int) -> dict[str, float]:
    """Million entries a second of each way to draw a matrix ``(d, d)``."""
    shape = (width, width)
    root = jax.random.key(0)
    ways: dict[str, Callable] = {
        "threefry written out": jax.jit(lambda key: threefry.normal(key, shape, F32)),
        "orthogonal": jax.jit(lambda key: haar(key, *shape, F32)),
    }
    for generator in ("threefry2x32", "rbg", "unsafe_rbg"):
        ways[f"jax {generator}"] = jax.jit(lambda key: jax.random.normal(key, shape, F32))
    own = {name: jax.random.key(0, impl=name[4:]) if name[:4] == "jax " else root for name in ways}
    seconds = medians({name: partial(ready, way, own[name]) for name, way in ways.items()}, repeats)
    return {name: width**2 / value / 1e6 for name, value in seconds.items()}


def depth_law(depths: tuple[int, ...], width: int, length: int) -> dict[str, Any]:
    """Seconds a draw, and processor seconds of building, at several depths: linear, and flat.

    The depths take turns, so that a noisy machine disturbs all of them alike.
    """
    draws, runs, first = 4, {}, {}
    for depth in depths:
        model = block_model(length, depth)
        runs[depth] = partial(simulate, model, np.eye(length), width=width, draws=draws, key=0, gradients=True)
        first[depth] = _seconds(runs[depth])
    again = {depth: [] for depth in depths}
    for depth in depths * 3:
        again[depth].append(_seconds(runs[depth]))
    rows = []
    for depth, times in again.items():
        seconds, processor = (min(column) for column in zip(*times, strict=True))
        built = first[depth][1] - processor
        rows.append({"layers": depth, "seconds a draw": seconds / draws, "building, processor": built})
    further = np.diff([row["seconds a draw"] for row in rows]) / np.diff(depths)
    return {
        "width": width,
        "positions": length,
        "rows": rows,
        # Equal where the time is linear in the layers, whatever a draw costs beside them.
        "seconds a further layer": further.tolist(),
        "building, deepest to shallowest": rows[-1]["building, processor"] / rows[0]["building, processor"],
    }


def _seconds(run: Callable) -> tuple[float, float]:
    """Seconds by the clock, and of all cores together."""
    started, busy = time.perf_counter(), time.process_time()
    run()
    return time.perf_counter() - started, time.process_time() - busy


MEMORY_PROGRAM = """
import pathlib, time
import numpy as np
import jax
from analysis.benchmarks.accelerator import block_model
from kernelprop.finite.simulation import simulate

depth, width, length = {sizes}
started = time.perf_counter()
found = simulate(block_model(length, depth), np.eye(length), width=width, draws=2, key=0, gradients=True)
assert np.isfinite(found.value.mean).all() and len(found.value.mean) == depth
peak = (jax.local_devices()[0].memory_stats() or {{}}).get("peak_bytes_in_use", 0)
# Not ru_maxrss, which begins at what the parent held when it forked.
resident = int(pathlib.Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]) * 1024
print(resident, peak, time.perf_counter() - started)
"""


def memory(depth: int, width: int, length: int) -> dict[str, Any]:
    """Peak memory of two draws with all gradient norms, in a process of its own."""
    program = MEMORY_PROGRAM.format(sizes=(depth, width, length))
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    resident, on_device, seconds = (float(word) for word in done.stdout.split())
    return {
        "layers": depth,
        "width": width,
        "positions": length,
        "weights of the network, GiB": depth * 12 * width**2 * 4 / 2**30,
        "peak resident, GiB": resident / 2**30,
        "peak on the device, GiB": on_device / 2**30,
        "seconds": seconds,
    }


def measure(size: Size, tell: Callable[[str, Any], None] = lambda name, value: None) -> dict[str, Any]:
    """Everything, telling each part as it is done."""
    length = min(64, size.memory[2])
    parts: dict[str, Callable[[], Any]] = {
        "environment": environment,
        "digits": digits,
        "agreement": lambda: agreement(*size.agreement),
        "drawing, million a second": lambda: drawing(size.speed[0], size.repeats),
        "speed": lambda: speed(*size.speed, size.repeats),
        "speed, few rows": lambda: speed(*size.few_rows, size.repeats),
        "depth": lambda: depth_law(size.depths, 8 * length if length < 64 else 256, length),
        "memory": lambda: memory(*size.memory),
    }
    found = {}
    # One matrix-product precision for all that is timed here by hand; simulate sets its own.
    with jax.default_matmul_precision("highest"):
        for name, part in parts.items():
            started = time.perf_counter()
            found[name] = part()
            found[name]["seconds of this part"] = time.perf_counter() - started
            tell(name, found[name])
    return found


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    default = "cpu" if jax.default_backend() == "cpu" else "accelerator"
    parser.add_argument("--size", choices=SIZES, default=default)
    parser.add_argument("--output", type=Path, default=RESULTS / "accelerator.json")
    chosen = parser.parse_args()
    found = measure(SIZES[chosen.size], lambda name, value: print(f"{name}: {json.dumps(value, indent=1)}", flush=True))
    print(f"written to {write_result(chosen.output, found)}")


if __name__ == "__main__":
    main()
