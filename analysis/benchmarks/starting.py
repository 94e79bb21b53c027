"""What stands before a first number: imports, the command's help, tracing and compiling.

Processor seconds of whole processes, which take turns; the first process of each is not counted. Targets: the import
1.6 times that of jax, help in half a second, the first result of an attention stack over 128 positions in 3 s.
"""

import resource
import statistics
import subprocess
import sys
from typing import Any

PROGRAMS = {
    "import jax": "import jax",
    "import kernelprop": "import kernelprop; kernelprop.propagate",
    "help": "from kernelprop.cli import main; main(['--help'])",
}
# The seconds of the first call alone, behind the imports.
FIRST = """
import time
import jax
import numpy as np
import kernelprop as kp
assert callable(kp.Transformer) and callable(kp.propagate) and callable(kp.MLP)
jax.block_until_ready(jax.numpy.zeros(1))
weights = np.exp(np.random.default_rng(0).normal(size=({heads}, {length}, {length})))
matrices = weights / weights.sum(-1, keepdims=True)
start = time.process_time()
model = kp.Transformer({attention}, {depth}, {mlp})
kp.propagate(model, kp.kernels.equicorrelated({length}, 0.1))
print(time.process_time() - start)
"""
JOBS = {
    "six layers of dense attention, 12 heads, T = 128": FIRST.format(
        heads=12, length=128, depth=6, attention="kp.dense(np.stack([matrices] * 6))", mlp="None"
    ),
    "100 ReLU layers, T = 512": FIRST.format(
        heads=1, length=512, depth=100, attention="kp.identity(512)", mlp="kp.MLP('relu', gain_in=2**0.5)"
    ),
    "12 GELU layers, T = 128": FIRST.format(
        heads=1, length=128, depth=12, attention="kp.dense(matrices[0])", mlp="kp.MLP('gelu')"
    ),
}
IMPORT_TARGET, HELP_TARGET, FIRST_TARGET = 1.6, 0.5, 3.0


def costs(repeats: int) -> dict[str, Any]:
    """Medians of all."""
    found: dict[str, list[float]] = {name: [] for name in [*PROGRAMS, *JOBS]}
    for measured in [False] + [True] * repeats:
        for name, program in PROGRAMS.items():
            seconds = _of_a_process(program)[0]
            found[name] += [seconds] * measured
        for name, program in JOBS.items():
            found[name] += [float(_of_a_process(program)[1].split()[-1])] * measured
    seconds = {name: statistics.median(values) for name, values in found.items()}
    return {"seconds": seconds, "import ratio": seconds["import kernelprop"] / seconds["import jax"]}


def show(starting: dict[str, Any]) -> None:
    """Print everything with its target."""
    seconds = starting["seconds"]
    print(
        f"import kernelprop: {starting['import ratio']:.2f} x import jax ({IMPORT_TARGET:g} is the target); help "
        f"{seconds['help']:.2f} s ({HELP_TARGET:g})"
    )
    for name in JOBS:
        print(f"first result, {name}: {seconds[name]:.2f} s of processor time ({FIRST_TARGET:g})", flush=True)


def _of_a_process(program: str) -> tuple[float, str]:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, done.stdout
