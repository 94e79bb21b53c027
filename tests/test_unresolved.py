"""A function that grows too fast for its variance: refused in a network as it is by itself."""

import jax.numpy as jnp
import numpy as np
import pytest

import kernelprop as kp


def grows(x):
    return jnp.exp(x / 2)


def test_below_the_limit_the_kernel_is_exact():
    """``E e^{u/2} e^{v/2} = e^{(q1 + q2 + 2 r)/8}``."""
    kernel = np.array([[16.0, 6.0], [6.0, 9.0]])
    found = kp.propagate(kp.Transformer(kp.identity(2), mlp=kp.MLP(grows)), kernel).kernels[-1]
    q = np.diag(kernel)
    np.testing.assert_allclose(found, np.exp((q[:, None] + q[None, :] + 2 * kernel) / 8), rtol=1e-10)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_the_layer_and_the_variance_are_named(dtype):
    model = kp.Transformer(kp.identity(2), 3, kp.MLP(grows, gain_in=[1.0, 2.0, 1.0]))
    # Behind the first layer e^{q/2} = e^4, which the second one's gain makes 4 e^4.
    with pytest.raises(ValueError, match=r"layer 2: activation: the quadrature .* variance 218.39\d*: two orders"):
        kp.propagate(model, 8 * np.eye(2), dtype=dtype)
    with pytest.raises(ValueError, match="converged at variance 218"):
        kp.dual(grows)(4 * np.exp(4), 1.0, 0.5)


@pytest.mark.slow
def test_under_drawn_attention_too():
    model = kp.Transformer(kp.random_softmax(3, chains=2, draws=4), 6, kp.MLP(grows))
    with pytest.raises(ValueError, match=r"layer \d: activation: the quadrature has not converged"):
        kp.propagate(model, 3 * np.eye(3))


@pytest.mark.slow
def test_overflow_is_flagged_and_no_fault_of_the_quadrature():
    """``E (u²)² = 3 q²``: far beyond the type's range after ten layers, and never hard to integrate."""
    evolution = kp.propagate(kp.Transformer(kp.identity(2), 12, kp.MLP(lambda x: x * x)), 5 * np.eye(2))
    expected = [5.0]
    for _ in range(8):
        expected.append(3 * expected[-1] ** 2)
    np.testing.assert_allclose(evolution.diagonal[:9, 0], expected, rtol=1e-9)
    assert evolution.undefined[-1]


def test_no_points_have_no_kernel():
    assert kp.dual("tanh")(1.0, 1.0, []).shape == kp.dual_derivative("tanh")(1.0, 1.0, []).shape == (0,)


@pytest.mark.slow
def test_gradients_name_the_layer_too():
    model = kp.Transformer(kp.identity(2), 3, kp.MLP(grows, gain_in=[1.0, 2.0, 1.0]))
    with pytest.raises(ValueError, match=r"layer 2: activation: the quadrature .* variance 218.39\d*: two orders"):
        kp.gradient_norms(model, 8 * np.eye(2))
