"""Peak memory of a whole run, in a process of its own."""

import subprocess
import sys
import time
from typing import Any

ESPA = """
import numpy as np
import kernelprop as kp
from kernelprop.trust import certify

model = kp.Transformer(kp.espa({length}, {depth}))
evolution = kp.propagate(model, certify(np.eye({length}, dtype="{dtype}")), "last", dtype="{dtype}")
prescribed = np.exp(-0.005 * np.arange({length}))
assert np.abs(evolution.kernels[-1][0] - prescribed).max() < 1e-4
"""
ESPA_AND_GELU = """
import numpy as np
import kernelprop as kp

model = kp.Transformer(kp.espa({length}, {depth}), mlp=kp.MLP("gelu"))
evolution = kp.propagate(model, kp.kernels.identity({length}), "last", dtype="{dtype}")
assert np.isfinite(evolution.kernels).all() and not evolution.undefined.any()
"""
# Not ru_maxrss, which begins at what the parent held when it forked.
PEAK = """
import pathlib
print(pathlib.Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0])
"""


def peak_gib(program: str) -> float:
    """Peak resident memory, GiB, of a Python program (Linux)."""
    done = subprocess.run([sys.executable, "-c", program + PEAK], capture_output=True, text=True, check=True)
    return int(done.stdout.split()[-1]) / 2**20


def espa_peak(length: int, depth: int, dtype: str) -> dict[str, Any]:
    """Peak memory of an E-SPA network from the identity kernel to the last one."""
    return _peak(ESPA, length, depth, dtype)


def espa_and_gelu_peak(length: int, depth: int, dtype: str) -> dict[str, Any]:
    """The same with a GELU MLP in every layer, and the seconds of the whole process."""
    start = time.perf_counter()
    return _peak(ESPA_AND_GELU, length, depth, dtype) | {"seconds": time.perf_counter() - start}


def _peak(program: str, length: int, depth: int, dtype: str) -> dict[str, Any]:
    peak = peak_gib(program.format(length=length, depth=depth, dtype=dtype))
    return {"length": length, "depth": depth, "dtype": dtype, "peak GiB": peak}
