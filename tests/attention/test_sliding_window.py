"""Windows at their ends; that they equal their matrices is tested over the registry."""

import numpy as np
import pytest

import kernelprop as kp
from kernelprop.attention.sliding_window import sliding_window


@pytest.mark.parametrize("width", range(1, 9))
@pytest.mark.parametrize("causal", [True, False])
def test_every_width_acts_as_its_matrix(width, causal):
    operator = sliding_window(7, width, causal)
    x = np.random.default_rng(width).normal(size=(7, 2))
    np.testing.assert_allclose(operator.matmul(x), operator.as_matrix() @ x, atol=1e-14)
    np.testing.assert_allclose(operator.rmatmul(x), operator.as_matrix().T @ x, atol=1e-14)


def test_the_ends_are_the_identity_and_uniform_attention():
    np.testing.assert_array_equal(sliding_window(5, 1).as_matrix(), np.eye(5))
    for width in (5, 6, 100):
        np.testing.assert_array_equal(sliding_window(5, width).as_matrix(), kp.uniform(5, causal=True).as_matrix())
        np.testing.assert_array_equal(sliding_window(5, width, causal=False).as_matrix(), kp.uniform(5).as_matrix())


def test_a_small_window_after_a_large_token_keeps_its_digits():
    """The difference of two prefix sums would lose them."""
    x = np.array([[1e16], [1.0], [2.0], [4.0]])
    np.testing.assert_array_equal(sliding_window(4, 2).matmul(x)[2:], [[1.5], [3.0]])


def test_no_width_is_refused():
    with pytest.raises(ValueError, match="sliding_window: width: 0 is too small"):
        sliding_window(4, 0)
