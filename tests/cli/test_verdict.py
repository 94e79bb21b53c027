"""The verdict in words, on networks whose fate is known."""

import numpy as np
import pytest

import kernelprop as kp
from kernelprop.cli.depths import keep_of, readable_selection
from kernelprop.cli.verdict import verdict


def fate(attention, kernel, depth, residual=None):
    return verdict(kp.propagate(kp.Transformer(attention, depth, residual), kernel, keep="last"))


CASES = [
    (kp.uniform(4), np.eye(4), 3, None, "attention alone collapses it: mean correlation 1 - 0.0e+00 after layer 3"),
    (kp.uniform(4), np.eye(4), 3, None, "collapsed from layer 1 on"),
    (kp.identity(4), np.eye(4), 3, None, "attention alone keeps the positions apart: mean correlation 0.0000"),
    (kp.identity(4), np.ones((4, 4)), 3, None, "starts from a kernel that is collapsed already"),
    (kp.uspa(4, 3, rho=0.9), np.eye(4), 3, None, "draws the positions together: mean correlation 0.9000"),
    (kp.identity(1), np.eye(1), 1, None, "acts on one position, which has nothing to agree with"),
    (kp.uniform(4), np.zeros((4, 4)), 3, None, "leaves a position without a signal after layer 3"),
    (kp.identity(4), np.eye(4), 3, (1.0, 2.0), "attention with its residual branch keeps"),
    (kp.identity(4), np.eye(4), 3, (1.0, 2.0), "the diagonal grows from 1 to 125"),
    (
        kp.uniform(4),
        np.stack([np.eye(4)] * 3),
        3,
        None,
        "leaves 3 of 3 kernels collapsed after layer 3",
    ),
    # Positions that point one way but differ in size have collapsed to rank one too.
    (kp.identity(2), [[1.0, 3.0], [3.0, 9.0]], 2, None, "starts from a kernel that is collapsed already"),
]


@pytest.mark.parametrize(("attention", "kernel", "depth", "weights", "words"), CASES)
def test_verdicts(attention, kernel, depth, weights, words):
    assert words in fate(attention, kernel, depth, None if weights is None else kp.Residual(attention=weights))


def test_a_long_network_shows_few_depths_and_its_last():
    assert readable_selection(12) == list(range(13))
    assert readable_selection(30) == [0, 1, 2, 5, 10, 20, 30]
    assert readable_selection(100) == [0, 1, 2, 5, 10, 20, 50, 100]


def test_all_kernels_are_kept_unless_they_would_fill_the_disk():
    assert keep_of(None, [0, 5], 100, 8 * 100**2) == "all"
    assert keep_of(None, [0, 5], 100, 8 * 2048**2) == [0, 5]
    assert keep_of("all", [0, 5], 100, 8 * 2048**2) == "all"
    assert keep_of("1, 2", [0], 9, 8) == [1, 2]
