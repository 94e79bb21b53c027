"""Random queries and keys at finite width: the spread of single networks, and the mean over many heads."""

import numpy as np
import pytest

import kernelprop as kp
from kernelprop.attention.random_softmax import random_softmax
from kernelprop.finite.simulation import simulate

KERNEL = np.array([[1.0, 0.5], [0.5, 1.0]])


@pytest.mark.parametrize(
    ("heads", "right"),
    [(1, 0.156), *(pytest.param(*case, marks=pytest.mark.slow) for case in ((4, 0.089), (16, 0.062)))],
)
def test_two_tokens_spread_as_their_heads_do(heads, right):
    """d = 512, d_k = 64: the standard deviation of Σ'_00 over 2,000 networks, within 4 standard errors and rounding.

    The kurtosis of Σ'_00 makes the error of the standard deviation; it is taken from the draws.
    """
    model = kp.Transformer(random_softmax(2))
    draws = 2000
    found = simulate(model, KERNEL, width=512, draws=draws, key=0, heads=heads, head_width=64, samples=True)
    spread = found.spread("diagonal")[1, 0]
    # Nearly Gaussian: the standard deviation's error is σ/√(2n); 1.5 times for its tail.
    stderr = 1.5 * spread / np.sqrt(2 * draws)
    assert abs(spread - right) < 4 * stderr + 5e-4, (spread, right, stderr)
    assert abs(spread - 1.2 * right) > 4 * stderr


def test_many_heads_agree_with_the_expectation():
    """The kernel's mean over networks of many heads is that of infinitely many."""
    length = 4
    kernel = 0.6 * np.eye(length) + 0.4
    attention = random_softmax(length, tau=1.5, causal=True, draws=1024)
    predicted = kp.propagate(kp.Transformer(attention, depth=2), kernel)
    finite = kp.Transformer(random_softmax(length, tau=1.5, causal=True), depth=2)
    found = simulate(finite, kernel, width=128, draws=200, key=0, heads=8, head_width=32, keep="all")
    stderr = np.sqrt(found.kernels.stderr**2 + predicted.kernels_stderr**2)
    difference = found.kernels.mean - predicted.kernels
    assert stderr[1:].max() < 0.017
    # One layer is right to O(1/d_k); the second one's logits feel the first one's spread, an O(1/H + 1/d) more.
    assert np.all(np.abs(difference[1]) < 4 * stderr[1] + 0.3 / 32)
    assert np.all(np.abs(difference[2]) < 4 * stderr[2] + 0.6 / 32)
    uniform = kp.propagate(kp.Transformer(kp.uniform(length, causal=True), depth=2), kernel).kernels
    assert np.any(np.abs(found.kernels.mean[1] - uniform[1]) > 4 * stderr[1] + 0.3 / 32)
