"""36 layers of E-SPA with MLPs: which activations keep a kernel that still tells positions apart.

He et al. 2023 train E-SPA with all of these activations but the plain sigmoid.
"""

import numpy as np
import pytest

import kernelprop as kp
from kernelprop.designs import design

L, T = 36, 16


@pytest.mark.parametrize(
    ("activation", "shaping", "keeps"),
    [("gelu", "dks", True), ("leaky_relu", "tat", True), ("gelu", None, True), ("sigmoid", None, False)],
    ids=["DKS GELU", "TAT leaky ReLU", "GELU", "sigmoid"],
)
def test_all_but_the_plain_sigmoid_keep_positions_apart(activation, shaping, keeps):
    network = design(T, L, activation=activation, shaping=shaping).network
    assert (network.mean_correlation[L] < 0.999) == keeps
    assert (network.rank_residual[L] > 0.05) == keeps
    if shaping is None and not keeps:
        assert network.mean_correlation[L] > 1 - 1e-5
    if shaping == "dks":
        assert np.abs(network.diagonal[L] - 1).max() < 0.1


def test_the_map_of_correlations_alone_is_the_reference():
    # Reference values: DKS of GELU for 36 layers carries .5 and .9 to these.
    model = kp.Transformer(kp.identity(3), L, kp.MLP(kp.dks("gelu", L)))
    angles = np.array([0.0, np.arccos(0.5), -np.arccos(0.9)])
    last = kp.propagate(model, np.cos(angles[:, None] - angles), keep="last").kernels[0]
    np.testing.assert_allclose(last[0, 1:], [0.399504758672, 0.857088239248], atol=1e-10)
