import numpy as np
import pytest

import kernelprop as kp
from kernelprop.layers import residual


def test_named_choices():
    assert residual.plain().attention == (1.0, 1.0)
    np.testing.assert_allclose(residual.normalised([0.6, 0.8]).mlp, [[0.8, 0.6], [0.6, 0.8]], atol=1e-15)
    np.testing.assert_allclose(residual.depth_scaled(16, 2.0, 1.0).attention, [1, 0.5])
    with pytest.raises(ValueError, match=r"beta is 1\.5; .* \[-1, 1\]"):
        residual.normalised(1.5)


def test_normalised_residuals_keep_a_unit_diagonal():
    model = kp.Transformer(kp.espa(8, 5, gamma=0.1), residual=residual.normalised(0.7))
    evolution = kp.propagate(model, np.eye(8))
    # Each branch has unit diagonal only if Σ is the prescribed kernel; a mixture with the skip is not.
    assert abs(evolution.diagonal[1] - 1).max() < 1e-14


def test_weights_are_spread_over_the_layers():
    spread = kp.Residual(attention=([1.0, 0.5], 2.0)).per_layer(2)
    np.testing.assert_array_equal(spread.attention, [[1.0, 0.5], [2.0, 2.0]])
    with pytest.raises(ValueError, match="its shape is"):
        kp.Residual(attention=(np.ones((2, 2)), 1.0))
