"""Files that commands read a network and its input from."""

import numpy as np
import pytest

import kernelprop as kp
from kernelprop.cli.described import read_file, read_network

MODEL = kp.Transformer(kp.uniform(4, causal=True), depth=2, positions=0.25 * np.eye(4))
KERNEL = kp.kernels.equicorrelated(4, 0.5)


def test_a_saved_evolution_brings_its_own_input_kernel(tmp_path):
    kp.propagate(MODEL, KERNEL).save(tmp_path / "run.npz")
    found = read_file(tmp_path / "run.npz")
    # Without what the positional embeddings add, which the network adds again.
    np.testing.assert_allclose(found.kernel0, KERNEL, atol=1e-15)
    again = kp.propagate(found.model, found.kernel0)
    np.testing.assert_allclose(again.kernels, kp.propagate(MODEL, KERNEL).kernels, atol=1e-15)


@pytest.mark.parametrize(
    ("result", "words"),
    [
        (lambda: kp.propagate(MODEL, KERNEL, keep="last"), "no input kernel"),
        (lambda: kp.gradient_norms(MODEL, KERNEL), "no input kernel"),
        (lambda: kp.propagate(MODEL, np.stack([KERNEL] * 3)), "3 input kernels"),
    ],
)
def test_no_other_input_takes_its_place(result, words, tmp_path):
    result().save(tmp_path / "run.npz")
    with pytest.raises(ValueError, match=words):
        read_file(tmp_path / "run.npz")
    assert read_network(tmp_path / "run.npz").depth == 2


def test_gradients_of_a_saved_run_are_those_of_its_input(command):
    asked = "--attention uniform --causal --length 6 --depth 2 --kernel equicorrelated --correlation 0.5"
    assert command(f"evolve {asked} --out run --no-plots").code == 0
    ran = command("gradients run/evolution.npz --json --no-plots --out gradients")
    assert ran.code == 0, ran.err
    right = kp.gradient_norms(kp.Transformer(kp.uniform(6, causal=True), 2), kp.kernels.equicorrelated(6, 0.5))
    saved = kp.load("gradients/gradients.npz")
    np.testing.assert_allclose(saved.query, right.query, rtol=1e-12)
