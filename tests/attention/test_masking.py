"""Masks over given attention: what a softmax with the mask in it makes of the same logits."""

import numpy as np
import pytest

import kernelprop as kp
from kernelprop.attention.biases import softmax_attention
from kernelprop.attention.masking import masked
from kernelprop.attention.mixture import mix, value_skip_init

T = 5
PADDING = np.array([True, True, True, False, False])
BIAS = np.random.default_rng(0).normal(size=(2, T, T))
SCALE = np.array([1, 2, 0.5, 3, 1.0])


@pytest.mark.parametrize("mask", [PADDING, np.tri(T, dtype=bool), np.tri(T, dtype=bool) & PADDING])
def test_it_is_the_softmax_of_the_same_bias_under_the_mask(mask):
    found = masked(softmax_attention(BIAS, rescale=SCALE), mask)
    expected = softmax_attention(BIAS, mask, SCALE)
    assert found.heads == 2
    np.testing.assert_allclose(found.as_matrix(), expected.as_matrix(), rtol=1e-13)
    assert not found.as_matrix()[:, ~np.broadcast_to(mask, (T, T))].any()  # exactly nothing
    np.testing.assert_allclose(found.as_matrix().sum(-1), np.broadcast_to(SCALE, (2, T)), rtol=1e-13)


def test_the_real_positions_evolve_as_the_sequence_without_its_padding():
    rng = np.random.default_rng(1)
    matrices = rng.random((3, 2, T, T))
    short = matrices[:, :, :3, :3]
    sums = matrices.sum(-1)[:, :, :3, None]
    kernel = kp.kernels.from_inputs(rng.normal(size=(T, 8)))
    padded = kp.propagate(kp.Transformer(masked(matrices, PADDING)), kernel)
    alone = kp.propagate(kp.Transformer(short / short.sum(-1, keepdims=True) * sums), kernel[:3, :3])
    np.testing.assert_allclose(padded.kernels[:, :3, :3], alone.kernels, rtol=1e-12)


def test_case_09_a_row_without_keys_is_refused_by_name():
    allowed = np.array([[1, 1, 0], [1, 1, 0], [0, 0, 0]], bool)
    with pytest.raises(ValueError, match="masked: position 2: every key that it attends to is masked"):
        masked(kp.uniform(3), allowed)
    diagonal = np.stack([np.full((2, 2), 0.5), np.eye(2)])
    with pytest.raises(ValueError, match="masked: layer 2, position 1: every key that it attends to is masked"):
        masked(diagonal, [True, False])
    two_rows = masked(kp.uniform(3), np.array([True, True, False])).conjugate(np.eye(3))
    np.testing.assert_allclose(two_rows, np.full((3, 3), 0.5), atol=1e-15)


def test_a_skip_of_the_values_is_not_masked():
    alpha, beta = np.array([0.9, 0.8]), np.array([0.1, 0.3])
    for inner in (kp.uniform(T), kp.identity(T), kp.espa(T, 2)):
        mask = np.tri(T, dtype=bool) if inner.depth is None else PADDING
        found = masked(mix(inner, alpha, beta), mask)
        assert found.depth == 2
        expected = alpha[:, None, None] * np.eye(T) + beta[:, None, None] * masked(inner, mask).as_matrix()
        np.testing.assert_allclose(found.as_matrix(), expected, rtol=1e-13)


@pytest.mark.parametrize(
    ("attention", "mask", "message"),
    [
        (np.eye(3), [1, 1, 0], "masked: mask: dtype int64 is not bool"),
        (np.eye(3), np.ones(4, bool), r"masked: mask: shape \(4,\) is neither \(3,\) nor \(3, 3\)"),
        (
            np.array([[[1, 0], [1, -0.5]]]),
            np.ones(2, bool),
            "masked: layer 1, position 1, column 1: the entry is -0.5;",
        ),
    ],
)
def test_what_a_mask_can_not_act_on_is_refused(attention, mask, message):
    with pytest.raises(ValueError, match=message):
        masked(attention, mask)


def test_value_skip_init_starts_as_the_identity():
    start = value_skip_init(kp.espa(T, 3))
    np.testing.assert_array_equal(start.as_matrix(), np.broadcast_to(np.eye(T), (3, T, T)))
    kernel = kp.kernels.exponential(T, 0.3)
    # Beyond rounding, what the engine does to split a kernel.
    np.testing.assert_allclose(kp.propagate(kp.Transformer(start), kernel, "last").kernels[0], kernel, rtol=1e-15)
    moved = value_skip_init(kp.uniform(T), alpha=0.8, beta=0.6)
    np.testing.assert_allclose(moved.as_matrix(), 0.8 * np.eye(T) + 0.12, atol=1e-16)
