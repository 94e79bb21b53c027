"""The map's numbers of a network whose stream has a closed form."""

import numpy as np
import pytest

import kernelprop as kp
from analysis.trainability import _numbers, tempered


@pytest.mark.slow
def test_the_growth_is_that_of_the_stream_in_front_of_a_final_norm():
    """Branches of variance 1 times ``β²`` beside plain skips: ``1 + L β²``; behind the norm it would be 1."""
    network = kp.Transformer(kp.uniform(4, causal=True), 6, norm=kp.Norm("pre", final=True), gains=kp.Gains(value=2.0))
    kernel = np.ones((4, 4))  # averages of equal positions have their variance
    found = _numbers(tempered(network, 3.0, 2.0), kernel)
    assert found["growth"] == pytest.approx(1 + 6 * 9 * 4, rel=1e-12)


def test_a_tempered_network_keeps_all_else():
    parts = {"positions": np.eye(4), "parallel": True, "norm": "pre", "gains": kp.Gains(key=3.0, temperature=0.5)}
    network = tempered(kp.Transformer(kp.uniform(4), 2, kp.MLP("relu"), **parts), 0.5, 4.0)
    assert network.parallel
    assert network.norm.place == "pre"
    np.testing.assert_array_equal(network.positions, np.eye(4))
    np.testing.assert_array_equal(network.gains.key, [3, 3])
    np.testing.assert_array_equal(network.gains.temperature, [2, 2])
    np.testing.assert_array_equal(network.residual.mlp[1], [0.5, 0.5])
