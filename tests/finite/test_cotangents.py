"""The loss's cotangent of measured gradients, by name or by its entries."""

import numpy as np
import pytest

import kernelprop as kp
from kernelprop import cotangents
from kernelprop.finite.inputs import cotangent_factor
from kernelprop.finite.simulation import simulate

LENGTH = 3


@pytest.mark.parametrize("name", ["last", "mean"])
def test_a_name_is_its_kernel(name):
    kernel = cotangents.resolve(name, LENGTH)
    by_name = cotangent_factor(name, LENGTH)
    np.testing.assert_array_equal(by_name, cotangent_factor(kernel, LENGTH))
    np.testing.assert_allclose(by_name @ by_name.T, kernel, atol=1e-15)


@pytest.mark.parametrize("identity", [None, "all"])
def test_all_positions_need_no_factor(identity):
    assert cotangent_factor(identity, LENGTH) is None


@pytest.mark.parametrize(
    ("cotangent", "message"),
    [
        ("first", "cotangent: 'first' is unknown; use 'all', 'last', 'mean' or a "),
        (np.eye(2), r"cotangent: shape \(2, 2\) does not fit 3 positions"),
    ],
)
def test_others_are_refused(cotangent, message):
    with pytest.raises(ValueError, match=message):
        simulate(kp.Transformer(kp.uniform(LENGTH)), np.eye(3), width=4, draws=2, key=0, cotangent=cotangent)


@pytest.mark.slow  # two compilations of a simulation
def test_a_name_is_measured_as_it_is_predicted():
    """The last position alone; the control: value gradients of all positions are three times as large."""
    model = kp.Transformer(kp.uniform(LENGTH))
    found = simulate(
        model, np.eye(LENGTH), width=4, draws=2000, key=0, gradients=True, cotangent="last", dtype="float64"
    )
    expected = kp.gradient_norms(model, np.eye(LENGTH), "last", width=4).value
    value = found.value
    assert (value.stderr < 0.05 * expected).all()
    assert (np.abs(value.mean - expected) < 4 * value.stderr).all()
    assert (np.abs(value.mean - 3 * expected) > 4 * value.stderr).all()
