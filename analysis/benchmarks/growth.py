"""``python -m analysis.benchmarks.growth [--quick]``: how time and memory grow with T, L, d and the number of draws.

Warm times, medians of turns; peak memory over that of importing. The exponents are fitted to the two largest sizes,
where what is constant counts least, beside those that the theory has. `figures.cost_growth` draws them.
"""

import argparse
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

import kernelprop as kp
from analysis.benchmarks.peak_memory import peak_gib
from analysis.benchmarks.timing import medians
from analysis.benchmarks.writing import RESULTS, environment, write_result

NOTHING = "import kernelprop as kp\nkp.propagate(kp.Transformer(kp.uniform(4), 2), kp.kernels.identity(4))\n"
FORWARD = """
import kernelprop as kp
kp.propagate(kp.Transformer(kp.espa({T}, {L})), kp.kernels.identity({T}), "last", dtype="float32")
"""
BACKWARD = """
import kernelprop as kp
kp.gradient_norms(kp.Transformer(kp.uniform({T}, causal=True), {L}), kp.kernels.identity({T}), checkpoint={way})
"""


class Growth(NamedTuple):
    """One quantity against one size: ``run(size)`` to time, or a program whose peak memory counts."""

    name: str
    against: str
    theory: float
    sizes: tuple[int, ...]
    run: Callable[[int], Callable[[], Any]] | None = None
    program: Callable[[int], str] | None = None


def propagated(length: int, depth: int, dense: bool) -> Callable[[], Any]:
    """A forward run."""
    attention = kp.dense(np.full((length, length), 1 / length)) if dense else kp.espa(length, depth)
    return partial(kp.propagate, kp.Transformer(attention, depth), kp.kernels.equicorrelated(length, 0.2), "last")


def backward(length: int, depth: int, dense: bool) -> Callable[[], Any]:
    """All gradient norms; of structured attention they too are products of the operator alone."""
    attention = kp.dense(np.full((length, length), 1 / length)) if dense else kp.espa(length, depth)
    return partial(kp.gradient_norms, kp.Transformer(attention, depth), kp.kernels.equicorrelated(length, 0.2))


def simulated(width: int, depth: int, draws: int) -> Callable[[], Any]:
    """Sampled networks with all gradient norms."""
    model = kp.Transformer(kp.uniform(64, causal=True), depth, mlp=kp.MLP("relu", 1))
    kernel = kp.kernels.identity(64)
    return partial(kp.simulate, model, kernel, width=width, draws=draws, key=0, gradients=True)


def growths(quick: bool) -> list[Growth]:
    """What is measured; quick, at sizes of seconds."""
    few = slice(0, 2) if quick else slice(None)
    deep = (8, 16, 32, 64)[few]
    return [
        Growth("propagate, E-SPA", "T", 2, (256, 512, 1024, 2048, 4096)[few], lambda T: propagated(T, 4, False)),
        Growth("propagate, dense", "T", 3, (256, 512, 1024, 2048)[few], lambda T: propagated(T, 4, True)),
        Growth("gradient_norms, dense", "T", 3, (128, 256, 512, 1024)[few], lambda T: backward(T, 4, True)),
        Growth("gradient_norms, E-SPA", "T", 2, (256, 512, 1024, 2048)[few], lambda T: backward(T, 4, False)),
        Growth("propagate, E-SPA", "L", 1, deep, lambda L: propagated(512, L, False)),
        Growth("gradient_norms, dense", "L", 1, deep, lambda L: backward(256, L, True)),
        Growth("simulate", "d", 2, (64, 128, 256, 512, 1024)[few], lambda d: simulated(d, 4, 4)),
        Growth("simulate", "L", 1, deep, lambda L: simulated(128, L, 4)),
        Growth("simulate", "draws", 1, deep, lambda n: simulated(128, 4, n)),
        Growth("memory, propagate", "T", 2, (1024, 2048, 4096, 8192)[few], program=lambda T: FORWARD.format(T=T, L=4)),
        Growth(
            "memory, gradient_norms",
            "L",
            1,
            (32, 64, 128, 256)[few],
            program=lambda L: BACKWARD.format(T=512, L=L, way=False),
        ),
        Growth(
            "memory, checkpointed",
            "L",
            0.5,
            (32, 64, 128, 256)[few],
            program=lambda L: BACKWARD.format(T=512, L=L, way=True),
        ),
    ]


def measured(growth: Growth, repeats: int, nothing: float) -> dict[str, Any]:
    """The numbers of one growth, seconds or GiB, and the exponent of its last two sizes."""
    if growth.run is not None:
        runs = {str(size): growth.run(size) for size in growth.sizes}
        values = list(medians(runs, repeats).values())
    else:
        assert growth.program is not None
        values = [peak_gib(growth.program(size)) - nothing for size in growth.sizes]
    low, high = (max(value, 1e-9) for value in values[-2:])
    exponent = float(np.log(high / low) / np.log(growth.sizes[-1] / growth.sizes[-2]))
    return {
        "name": growth.name,
        "against": growth.against,
        "unit": "seconds" if growth.run is not None else "GiB",
        "sizes": list(growth.sizes),
        "values": values,
        "exponent": exponent,
        "theory": growth.theory,
    }


def main() -> None:
    """Measure, print, and write the result whole."""
    parser = argparse.ArgumentParser(prog="python -m analysis.benchmarks.growth", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="two small sizes each")
    quick = parser.parse_args().quick
    started, nothing, rows = environment(), peak_gib(NOTHING), []
    for growth in growths(quick):
        rows.append(measured(growth, 1 if quick else 3, nothing))
        row = rows[-1]
        points = ", ".join(f"{size}: {value:.3g}" for size, value in zip(row["sizes"], row["values"], strict=True))
        print(
            f"{row['name']} against {row['against']}: {points} {row['unit']}; exponent {row['exponent']:.2f}, "
            f"theory {row['theory']:g}",
            flush=True,
        )
    name = "growth-quick.json" if quick else "growth.json"
    print(f"written to {write_result(RESULTS / name, {'environment': started, 'growths': rows})}")


if __name__ == "__main__":
    main()
