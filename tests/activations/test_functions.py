"""Functions that a user passes: kinks, narrow features, and what can't be computed."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import kernelprop.activations as act

CORRELATIONS = np.array([-1, -0.999999, -0.5, 0, 0.3, 0.9, 0.999999, 1])


def mean(function, q=1.0, kinks=()):
    with jax.enable_x64(True):
        return float(act.activation(function, kinks).mean(jnp.full((1,), q))[0])


def test_case_34_narrow_features_are_resolved():
    assert mean(lambda z: jnp.exp(-(((z - 3) / 0.001) ** 2) / 2)) == pytest.approx(1.110904097427012e-5, rel=1e-12)
    assert act.dual(lambda z: jnp.tanh(100 * z))(1.0, 1.0, 1.0) == pytest.approx(0.992021482480513, rel=1e-13)


def test_case_35_plain_moments():
    moments = [mean(f) for f in (jnp.ones_like, jnp.square, lambda z: z**4, jnp.cos)]
    np.testing.assert_allclose(moments, [1, 1, 3, 0.6065306597126334], rtol=1e-14)


@pytest.mark.parametrize(("make", "kinks"), [(act.dual, ()), (act.dual_derivative, ()), (act.dual_derivative, (0.0,))])
def test_a_kink_declared_or_found_is_integrated_piecewise(make, kinks):
    def rectifier(x):
        return jnp.maximum(x, 0.0)

    exact = make("relu")
    q1, q2 = np.array([[1.0], [1e3], [1e3]]), np.array([[7.0], [1e-3], [1e3]])
    bound = np.sqrt(exact(q1, q1, 1.0) * exact(q2, q2, 1.0))
    error = make(rectifier, kinks=kinks)(q1, q2, CORRELATIONS) - exact(q1, q2, CORRELATIONS)
    assert (np.abs(error) <= 1e-13 * bound).all()


def test_a_step_has_a_kernel_and_no_derivative():
    np.testing.assert_allclose(
        act.dual(jnp.sign, kinks=(0.0,))(1.0, 4.0, CORRELATIONS), 2 / np.pi * np.arcsin(CORRELATIONS), atol=1e-13
    )
    with pytest.raises(ValueError, match="the function jumps from -1 to 1 at x = 0; it has no derivative there"):
        act.dual_derivative(jnp.sign, kinks=(0.0,))(1.0, 1.0, 0.5)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: jnp.floor(50 * x), r"if it has a kink or jumps there, declare it: kinks=\("),
        (lambda x: 1 / (x - 0.5), "activation: "),
        (
            lambda x: np.tanh(np.asarray(x)),
            "JAX can't evaluate or differentiate this function; write it with jax.numpy",
        ),
        (jnp.sum, "an elementwise function is wanted"),
        (lambda x: jnp.exp(x * x), "activation: "),
    ],
)
def test_what_can_not_be_computed_is_an_error_never_a_number(function, message):
    with pytest.raises(ValueError, match=message):
        act.dual(function)(1.0, 1.0, 0.5)


def test_a_derivative_that_is_not_the_functions_own_is_refused():
    def straight_through(x):
        return x + jax.lax.stop_gradient(jnp.tanh(x) - x)

    with pytest.raises(ValueError, match="its derivative as JAX computes it says"):
        act.dual_derivative(straight_through)(1.0, 1.0, 0.5)


def test_a_function_that_grows_too_fast_is_refused_at_the_variance_where_it_does():
    kernel = act.dual(jnp.exp)
    assert kernel(1.0, 1.0, 0.5) == pytest.approx(np.exp(1.5), rel=1e-13)
    with pytest.raises(ValueError, match=r"has not converged at variance 30: .* beyond 11 standard deviations"):
        kernel(30.0, 1.0, 0.5)


def test_tracers_are_taken_and_differentiated():
    kernel = act.dual("tanh")
    with jax.enable_x64(True):
        value, slope = jax.jit(jax.value_and_grad(lambda c: kernel(1.0, 1.0, c)))(jnp.float64(1))
    assert float(value) == pytest.approx(float(kernel(1.0, 1.0, 1.0)), rel=1e-14)
    assert float(slope) == pytest.approx(float(act.dual_derivative("tanh")(1.0, 1.0, 1.0)), rel=1e-13)
    single = jax.jit(act.dual("relu"))(1.0, 1.0, 0.5)
    assert single.dtype == jnp.float32


def test_lists_broadcast_and_come_back_as_numpy():
    value = act.dual("relu")([[1.0], [2.0]], 1, [0.0, 1.0, -1.0])
    assert isinstance(value, np.ndarray)
    assert value.shape == (2, 3)
    assert value.dtype == np.float64
    assert isinstance(act.dual("relu")(1, 1, 0), np.float64)
