"""Peak memory of a whole run, in a process of its own."""

import subprocess
import sys
from typing import Any

PROGRAM = """
import pathlib
import numpy as np
import kernelprop as kp
from kernelprop.trust import certify

model = kp.Transformer(kp.espa({length}, {depth}))
evolution = kp.propagate(model, certify(np.eye({length}, dtype="{dtype}")), "last", dtype="{dtype}")
prescribed = np.exp(-0.005 * np.arange({length}))
assert np.abs(evolution.kernels[-1][0] - prescribed).max() < 1e-4
# Not ru_maxrss, which begins at what the parent held when it forked.
print(pathlib.Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0])
"""


def espa_peak(length: int, depth: int, dtype: str) -> dict[str, Any]:
    """Peak resident memory, GiB, of an E-SPA network from the identity kernel to the last one."""
    program = PROGRAM.format(length=length, depth=depth, dtype=dtype)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return {"length": length, "depth": depth, "dtype": dtype, "peak GiB": int(done.stdout) / 2**20}
