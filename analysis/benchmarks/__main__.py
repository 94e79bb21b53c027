"""``python -m analysis.benchmarks [--quick] [--check]``: run everything, print a table, write ``results/``.

``--check`` writes nothing and fails where a ratio is more than 20 % worse than the stored one.
"""

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from analysis.benchmarks import peak_memory, propagation, regression, starting
from analysis.benchmarks.writing import RESULTS, environment, write_result

# (length, depth): enough layers that the first and the last don't count.
FULL = ((128, 1000), (512, 30), (1024, 10), (2048, 6), (4096, 3))
QUICK = ((128, 1000), (512, 10), (1024, 4))


def measure(quick: bool) -> dict[str, Any]:
    """Run the benchmarks, telling each as it is done."""
    lengths, repeats = (QUICK, 3) if quick else (FULL, 5)
    layers = []
    for dtype in ("float64", "float32"):
        for length, depth in lengths:
            layers.append(propagation.layer_costs(length, depth, dtype, repeats))
            show(layers[-1])
    building = propagation.building_costs(128, (10, 1000), repeats)
    print(f"building: L = 1000 takes {building['ratio']:.2f} times as long as L = 10 {building['seconds']}")
    error = propagation.single_precision_error(256 if quick else 1024, 50)
    print(f"float32 against float64, E-SPA: largest difference {error['largest difference']:.2g}")
    peak = peak_memory.espa_peak(*((2048, 4) if quick else (8192, 8)), "float32")
    print(f"peak memory, E-SPA, T = {peak['length']}, float32: {peak['peak GiB']:.2f} GiB")
    large = peak_memory.espa_and_gelu_peak(*((2048, 4) if quick else (16384, 24)), "float32")
    print(
        f"peak memory, E-SPA and a GELU MLP, T = {large['length']}, L = {large['depth']}, float32: "
        f"{large['peak GiB']:.2f} GiB, {large['seconds']:.0f} s"
    )
    started = starting.costs(repeats)
    starting.show(started)
    return {
        "layers": layers,
        "building": building,
        "starting": started,
        "single precision": error,
        "memory": peak,
        "memory with an MLP": large,
    }


def costs(result: dict[str, Any]) -> dict[str, float]:
    """The ratios that a check compares; each counts what is paid."""
    found = {"building, L = 1000 / L = 10": result["building"]["ratio"]}
    if "starting" in result:
        found["import kernelprop / import jax"] = result["starting"]["import ratio"]
    for row in result["layers"]:
        milliseconds = row["milliseconds a layer"]
        for name in milliseconds.keys() - {"two products", "one pass"}:
            ratio = milliseconds[name] / milliseconds["two products"]
            found[f"{name} / two products, T = {row['length']}, {row['dtype']}"] = ratio
    return found


def show(row: dict[str, Any]) -> None:
    """Print one length's row."""
    times = ", ".join(f"{name} {value:.3g}" for name, value in row["milliseconds a layer"].items())
    factors = row["two products / structured"]
    slowest = min(factors, key=lambda name: factors[name])
    print(
        f"{row['dtype']} T = {row['length']:>5}: {times} ms a layer; dense {row['dense / two products']:.2f} x two "
        f"products; E-SPA {factors['espa']:.1f} x faster than they, {row['floors']['espa']['gap']:.1f} x its floor; "
        f"slowest: {slowest}, {factors[slowest]:.1f} x faster",
        flush=True,
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and write the result whole or compare it with the stored one."""
    parser = argparse.ArgumentParser(prog="python -m analysis.benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes, a minute or so")
    parser.add_argument("--check", action="store_true", help="compare with the stored results instead of writing them")
    chosen = parser.parse_args(arguments)
    path = RESULTS / ("propagation-quick.json" if chosen.quick else "propagation.json")
    try:
        stored = costs(regression.read(path)) if chosen.check else None
    except ValueError as reason:
        print(reason, file=sys.stderr)
        return 2
    result = {"environment": environment(), **measure(chosen.quick)}
    if stored is not None:
        return regression.told(path, stored, costs(result))
    print(f"written to {write_result(path, result)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
