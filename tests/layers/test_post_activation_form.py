"""The two places of an activation beside a skip, by value.

``c → c/2 + C(c)/2`` has it in the branch. With it behind the sum, ``c → C(c/2 + C(c)/2)``, one layer is two: one with
skip and branch of squared weight 1/2, and one without a skip.
"""

import numpy as np
import pytest

import kernelprop as kp
from kernelprop.activations.shaping.blocks import compose, rectifier_map

HALF = 0.5**0.5
RELU = kp.MLP("relu", gain_out=2**0.5)  # keeps a unit diagonal

# Case 29, and the depths between of the post-activation form by the arc-cosine formula, in 30 digits.
INSIDE = [0.1591549430918953, 0.2805411589175892, 0.3758659073696712]
BEHIND = [0.4019273747432830, 0.5915500871624625, 0.7000052040637872]


def layers(alphas, betas, mlp=RELU):
    """A network of MLPs alone: the attention is the identity, its branch switched off."""
    return kp.Transformer(kp.identity(2), len(alphas), mlp, kp.Residual((1.0, 0.0), (alphas, betas)))


def test_the_activation_inside_the_branch_case_29():
    evolution = kp.propagate(layers([HALF] * 3, [HALF] * 3), kp.kernels.identity(2))
    np.testing.assert_allclose(evolution.mean_correlation[1:], INSIDE, rtol=1e-12)


def test_the_activation_behind_the_sum_case_29():
    evolution = kp.propagate(layers([HALF, 0.0] * 3, [HALF, 1.0] * 3), kp.kernels.identity(2))
    np.testing.assert_allclose(evolution.mean_correlation[2::2], BEHIND, rtol=1e-12)
    np.testing.assert_allclose(evolution.diagonal, 1, rtol=1e-14)
    # The two orders are told apart by far, and so is the layer without its skip.
    assert abs(evolution.mean_correlation[-1] - INSIDE[-1]) > 0.3
    swapped = kp.propagate(layers([0.0, HALF] * 3, [1.0, HALF] * 3), kp.kernels.identity(2))
    assert abs(swapped.mean_correlation[-1] - BEHIND[-1]) > 0.002


def test_the_block_maps_compose_to_both_forms_case_29():
    relu = lambda c: rectifier_map(0.0, c)  # noqa: E731
    for depth in (1, 2, 3):
        assert compose([(0.5, 0.5)] * depth, relu) == pytest.approx(INSIDE[depth - 1], rel=1e-14)
        assert compose([(0.5, 0.5), (0.0, 1.0)] * depth, relu) == pytest.approx(BEHIND[depth - 1], rel=1e-14)
    # Shaping counts all six activations: its ceiling is what the ReLU reaches in this form. (A shaped leaky ReLU keeps
    # the variance by its own scale.)
    with pytest.raises(ValueError, match=r"by 6 nonlinear layers; the ceiling, .* is 0\.7000052040637"):
        kp.shape_activation(layers([HALF, 0.0] * 3, [HALF, 1.0] * 3, kp.MLP("relu")), "tat", eta=0.9)


def test_the_post_activation_form_as_toml_case_29(tmp_path):
    kp.save_description(tmp_path / "post.toml", layers([HALF, 0.0] * 3, [HALF, 1.0] * 3))
    model = kp.load_description(tmp_path / "post.toml").model
    last = kp.propagate(model, kp.kernels.identity(2)).mean_correlation[-1]
    assert last == pytest.approx(BEHIND[-1], rel=1e-12)
