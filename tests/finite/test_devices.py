"""Draws spread over devices and processes: the result is the same."""

import os
import socket
import subprocess
import sys

import numpy as np
import pytest

import kernelprop as kp
from kernelprop import storage
from kernelprop.finite.simulation import simulate

PROGRAM = """
import sys
import jax
import numpy as np
import kernelprop as kp

process, count, port, path = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4]
if count > 1:
    jax.distributed.initialize(f"127.0.0.1:{port}", count, process)
assert jax.device_count() == 4, jax.devices()
from kernelprop.finite.simulation import simulate
from tests.finite.test_devices import OPTIONS, model

found = simulate(model(), np.eye(4), **OPTIONS)
# Fewer draws than devices, and then none for a whole process.
few = simulate(model(), np.eye(4), **OPTIONS | {"draws": 2})
np.testing.assert_allclose(few.samples["rank_residual"], found.samples["rank_residual"][:2], rtol=1e-12)
if process == 0:
    found.save(path)
"""
# A number of draws that 4 devices do not divide.
OPTIONS = {"width": 8, "draws": 7, "key": 5, "gradients": True, "samples": True, "dtype": "float64"}


def model():
    return kp.Transformer(kp.uniform(4, causal=True), depth=2, mlp=kp.MLP("relu", 1))


def run(tmp_path, processes):
    path = tmp_path / f"{processes}.npz"
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    environment = os.environ | {
        "JAX_PLATFORMS": "cpu",
        "XLA_FLAGS": f"--xla_force_host_platform_device_count={4 // processes}",
    }
    running = [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(process), str(processes), str(port), str(path)],
            env=environment,
            stderr=subprocess.PIPE,
            text=True,
        )
        for process in range(processes)
    ]
    try:
        for one in running:
            _, errors = one.communicate(timeout=240)
            assert one.returncode == 0, errors[-3000:]
    finally:
        for one in running:
            one.kill()
    return storage.load(path)


@pytest.mark.parametrize("processes", [1, 2])
def test_the_result_does_not_depend_on_devices_and_processes(tmp_path, processes):
    """Four devices of one process, and two processes of two devices each, on the loopback."""
    here = simulate(model(), np.eye(4), **OPTIONS)
    spread = run(tmp_path, processes)
    assert spread.draws == 7
    for name, values in here.samples.items():
        np.testing.assert_allclose(spread.samples[name], values, rtol=1e-12, err_msg=name)
    for name in ("kernels", "diagonal", "value", "query"):
        np.testing.assert_allclose(getattr(spread, name).mean, getattr(here, name).mean, rtol=1e-12)
        np.testing.assert_allclose(getattr(spread, name).stderr, getattr(here, name).stderr, rtol=1e-10, atol=1e-15)
