"""``python -m analysis.benchmarks.gradients [--quick]``: what all gradient norms cost beside the forward propagation.

The target is six times the forward propagation's time (about nine products a layer against two), for a Pre-LN GELU
transformer with dense attention, 512 positions and 48 layers; and 8 GiB for 2048 positions and 24 layers.
"""

import argparse
from functools import partial
from typing import Any

import numpy as np

import kernelprop as kp
from analysis.benchmarks.peak_memory import peak_gib
from analysis.benchmarks.timing import medians
from analysis.benchmarks.writing import RESULTS, environment, write_result

MEMORY = """
import numpy as np
import kernelprop as kp
from analysis.benchmarks.gradients import pre_norm_network
norms = kp.gradient_norms(pre_norm_network({length}, {depth}), kp.kernels.equicorrelated({length}, 0.3))
assert np.isfinite(norms.query).all()
"""


def pre_norm_network(length: int, depth: int) -> kp.Transformer:
    """A Pre-LN GELU transformer whose attention is dense: softmaxes of random logits, one a layer."""
    logits = np.random.default_rng(0).normal(size=(1, length, length))
    weights = np.exp(logits)
    matrices = weights / weights.sum(-1, keepdims=True)
    return kp.Transformer(
        kp.dense(np.broadcast_to(matrices, (depth, length, length))),
        mlp=kp.MLP("gelu"),
        norm=kp.Norm("pre"),
        residual=kp.Residual(attention=(1.0, depth**-0.5), mlp=(1.0, depth**-0.5)),
    )


def costs(length: int, depth: int, repeats: int) -> dict[str, Any]:
    """Seconds of both, compiled, and their ratio."""
    model, kernel = pre_norm_network(length, depth), kp.kernels.equicorrelated(length, 0.3)
    contenders = {
        "forward": partial(kp.propagate, model, kernel, "last"),
        "gradients": partial(kp.gradient_norms, model, kernel),
        "gradients, checkpointed": partial(kp.gradient_norms, model, kernel, checkpoint=True),
    }
    seconds = medians(contenders, repeats)
    ratios = {name: value / seconds["forward"] for name, value in seconds.items()}
    return {"length": length, "depth": depth, "seconds": seconds, "over forward": ratios}


def main() -> None:
    """Measure, print, and write the result whole."""
    parser = argparse.ArgumentParser(prog="python -m analysis.benchmarks.gradients", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes")
    quick = parser.parse_args().quick
    started = environment()
    rows = []
    for length, depth in ((128, 24),) if quick else ((128, 48), (512, 48), (1024, 12)):
        rows.append(costs(length, depth, 3))
        told = ", ".join(f"{name} {value:.3g} s" for name, value in rows[-1]["seconds"].items())
        ratio = rows[-1]["over forward"]["gradients"]
        print(f"T = {length}, L = {depth}: {told}; all norms {ratio:.2f} x the forward propagation", flush=True)
    length, depth = (512, 6) if quick else (2048, 24)
    peak = peak_gib(MEMORY.format(length=length, depth=depth))
    print(f"peak memory, T = {length}, L = {depth}, float64: {peak:.2f} GiB")
    content = {"environment": started, "costs": rows, "memory": {"length": length, "depth": depth, "peak GiB": peak}}
    print(f"written to {write_result(RESULTS / ('gradients-quick.json' if quick else 'gradients.json'), content)}")


if __name__ == "__main__":
    main()
