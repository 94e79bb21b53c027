"""``python -m analysis.benchmarks [--quick]``: run everything, print a table, write ``results/``."""

import argparse
from typing import Any

from analysis.benchmarks import peak_memory, propagation
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
    return {"layers": layers, "building": building, "single precision": error, "memory": peak}


def show(row: dict[str, Any]) -> None:
    """Print one length's row."""
    times = ", ".join(f"{name} {value:.3g}" for name, value in row["milliseconds a layer"].items())
    print(
        f"{row['dtype']} T = {row['length']:>5}: {times} ms a layer; dense {row['dense / two products']:.2f} x two "
        f"products; E-SPA {row['dense / espa']:.1f} x faster than dense",
        flush=True,
    )


def main() -> None:
    """Measure, and write the result whole."""
    parser = argparse.ArgumentParser(prog="python -m analysis.benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes, a minute or so")
    quick = parser.parse_args().quick
    result = {"environment": environment(), **measure(quick)}
    print(f"written to {write_result(RESULTS / ('propagation-quick.json' if quick else 'propagation.json'), result)}")


if __name__ == "__main__":
    main()
