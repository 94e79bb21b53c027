"""Every activation behaves alike: one list of them, many behaviours."""

from functools import lru_cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kernelprop.activations as act
from kernelprop.activations import ACTIVATIONS
from kernelprop.precision import to_numpy

NUMERIC = ("tanh", "sigmoid", "softplus", "silu", "gelu_tanh")
EPS = np.finfo(float).eps


@lru_cache
def tokens() -> tuple[np.ndarray, np.ndarray]:
    """Eight tokens: equal, opposite and almost equal directions among them, variances 1e-3 to 1e3."""
    directions = np.random.default_rng(3).normal(size=(8, 6))
    directions[1], directions[2] = directions[0], -directions[0]
    directions[3] = directions[0] + 1e-3 * directions[3]
    directions /= np.linalg.norm(directions, axis=1)[:, None]
    c = np.clip(directions @ directions.T, -1, 1)
    np.fill_diagonal(c, 1)
    return np.array([1e-3, 7.0, 1.0, 0.1, 1e3, 1.0, 1e3, 7.0]), c


@lru_cache
def kernels(name: str):
    phi = act.activation(name)

    def summed(q, c):
        kernel = phi.kernel(q, c)
        weights = jnp.asarray(np.random.default_rng(0).normal(size=kernel.shape), kernel.dtype)
        return jnp.sum(weights * kernel), (kernel, weights)

    return jax.jit(phi.kernel), jax.jit(jax.value_and_grad(summed, argnums=(0, 1), has_aux=True))


def test_the_names():
    assert set(ACTIVATIONS) == {
        *("linear", "square", "relu", "leaky_relu", "erf", "gelu", "gelu_tanh", "sin", "cos"),
        *("tanh", "sigmoid", "softplus", "silu"),
    }
    assert all(phi.name == name for name, phi in ACTIVATIONS.items())
    assert act.activation("swish") is ACTIVATIONS["silu"]
    assert act.activation(ACTIVATIONS["relu"]) is ACTIVATIONS["relu"]
    with pytest.raises(ValueError, match="'rleu' is unknown; the names are cos, erf, gelu, gelu_tanh, identity"):
        act.activation("rleu")
    with pytest.raises(ValueError, match="a name or a function on arrays is wanted, 3 was given"):
        act.activation(3)
    with pytest.raises(ValueError, match="with an activation that knows its own"):
        act.activation("relu", kinks=(0.0,))


@pytest.mark.parametrize("x64", [False, True])
@pytest.mark.parametrize("name", ACTIVATIONS)
def test_a_function_keeps_its_inputs_dtype(name, x64):
    phi = ACTIVATIONS[name]
    with jax.enable_x64(x64):
        assert np.isfinite(jax.jit(jax.vmap(jax.grad(phi)))(jnp.array([-2.0, 0.0, 2.0]))).all()
        for dtype in ("bfloat16", "float32", *(["float64"] if x64 else [])):
            x = jnp.linspace(-2, 2, 5).astype(dtype)
            assert phi(x).dtype == dtype
            slope = jax.jit(jax.vmap(jax.grad(phi)))
            assert jax.eval_shape(slope, x).dtype == dtype


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_the_matrix_form_is_the_elementwise_one(name):
    q, c = tokens()
    with jax.enable_x64(True):
        kernel = np.asarray(kernels(name)[0](jnp.asarray(q), jnp.asarray(c)))
    elementwise = act.dual(name)(q[:, None], q, c)
    size = np.sqrt(np.diag(kernel))
    assert (np.abs(kernel - elementwise) <= 1e-13 * size[:, None] * size).all()
    assert kernel.dtype == np.float64


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name in NUMERIC[1:] else name for name in ACTIVATIONS]
)
def test_gradients_are_finite_and_right_and_change_no_value(name):
    q, c = tokens()
    with jax.enable_x64(True):
        plain, differentiated = kernels(name)
        value = np.asarray(plain(jnp.asarray(q), jnp.asarray(c)))
        (_, (kernel, weights)), (by_q, by_c) = to_numpy(differentiated(jnp.asarray(q), jnp.asarray(c)))
        _, at_zero = to_numpy(differentiated(jnp.asarray(q * (np.arange(8) != 2)), jnp.asarray(c)))
    assert all(np.isfinite(gradient).all() for gradient in at_zero)
    # The same formulas; XLA may fuse them differently, which moves the last digits.
    size = np.sqrt(np.diag(value))
    assert (np.abs(value - kernel) <= 64 * EPS * size[:, None] * size).all()
    assert np.isfinite(by_q).all()
    assert np.isfinite(by_c).all()
    off = ~np.eye(len(q), dtype=bool)
    roots = np.sqrt(q)
    slope = roots[:, None] * roots * act.dual_derivative(name)(q[:, None], q, c)
    slope_size = np.sqrt(np.diag(slope))
    error = np.abs(by_c - weights * slope)[off]
    assert (error <= 1e-12 * (np.abs(weights) * slope_size[:, None] * slope_size)[off]).all()


@pytest.mark.parametrize("name", ["relu", "gelu", "sin", "tanh"])
def test_the_gradient_in_the_variances_is_that_of_the_values(name):
    q, c = tokens()
    q = np.clip(q, 0.1, 10)
    step = 1e-5
    with jax.enable_x64(True):
        plain, differentiated = kernels(name)
        (_, (_, weights)), (by_q, _) = to_numpy(differentiated(jnp.asarray(q), jnp.asarray(c)))
        for i in (0, 3, 5):
            move = q[i] * step * np.eye(len(q))[i]
            rise = [
                float((weights * np.asarray(plain(jnp.asarray(q + s * move), jnp.asarray(c)))).sum()) for s in (1, -1)
            ]
            # Differences: q^2 step^2 of the third derivative, and rounding over the step.
            assert float(by_q[i]) == pytest.approx((rise[0] - rise[1]) / (2 * q[i] * step), rel=1e-8, abs=1e-8)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_kernels_are_symmetric_and_positive_semidefinite(name):
    q, c = tokens()
    with jax.enable_x64(True):
        kernel = np.asarray(kernels(name)[0](jnp.asarray(q), jnp.asarray(c)))
    size = np.sqrt(np.diag(kernel))
    scaled = kernel / size[:, None] / size
    np.testing.assert_allclose(scaled, scaled.T, rtol=0, atol=8 * EPS)
    assert np.linalg.eigvalsh(scaled).min() >= -1e-13


@pytest.mark.parametrize("name", ["relu", "gelu", "tanh"])
def test_float32_is_kept_and_accurate_to_it(name):
    q, c = tokens()
    single = ACTIVATIONS[name].kernel(jnp.asarray(q, jnp.float32), jnp.asarray(c, jnp.float32))
    assert single.dtype == jnp.float32
    exact = act.dual(name)(q[:, None], q, c)
    size = np.sqrt(np.diag(exact))
    # c itself is known to 6e-8, which the slope, at most 30 times the value here, multiplies.
    assert (np.abs(single - exact) <= 2e-6 * size[:, None] * size).all()


@pytest.mark.parametrize("name", ["relu", "erf", "gelu", "sin", "tanh"])
@settings(max_examples=8)
@given(c=st.floats(-0.99, 0.99), q1=st.floats(0.01, 20), q2=st.floats(0.01, 20))
def test_kdot_is_the_slope_of_k(name, c, q1, q2):
    kernel, derivative = act.dual(name), act.dual_derivative(name)
    step = 1e-3 * (1 - abs(c))
    near, far = kernel(q1, q2, [c + step, c - step]), kernel(q1, q2, [c + 2 * step, c - 2 * step])
    slope = (8 * (near[0] - near[1]) - (far[0] - far[1])) / (12 * step)
    size = np.sqrt(q1 * q2 * float(derivative(q1, q1, 1.0)) * float(derivative(q2, q2, 1.0)))
    # Fourth-order differences with steps a thousandth of the distance to the nearest singularity.
    noise = 8 * EPS * np.sqrt(float(kernel(q1, q1, 1.0)) * float(kernel(q2, q2, 1.0))) / step
    assert abs(slope - np.sqrt(q1 * q2) * derivative(q1, q2, c)) <= 1e-9 * size + noise


@pytest.mark.parametrize("name", ["relu", "gelu", "cos", "tanh"])
@settings(max_examples=12)
@given(seed=st.integers(0, 2**32 - 1), rank=st.integers(1, 8))
def test_any_kernel_maps_to_a_kernel(name, seed, rank):
    draws = np.random.default_rng(seed)
    rows = draws.normal(size=(8, rank)) * np.exp(draws.normal(size=(8, 1)))
    q = np.square(rows).sum(axis=1)
    c = np.clip(rows @ rows.T / np.sqrt(q[:, None] * q), -1, 1)
    with jax.enable_x64(True):
        kernel = np.asarray(kernels(name)[0](jnp.asarray(q), jnp.asarray((c + c.T) / 2)))
    size = np.sqrt(np.diag(kernel))
    scaled = kernel / size[:, None] / size
    assert np.linalg.eigvalsh(scaled).min() >= -1e-12
    assert (np.abs(scaled) <= 1 + 1e-13).all()


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_one_dimensional_moments(name):
    phi = ACTIVATIONS[name]
    q = np.array([1e-3, 1.0, 7.0, 1e3])
    with jax.enable_x64(True):
        moments = jax.jit(lambda q: (phi.mean(q), phi.second_moment(q), phi.derivative_second_moment(q)))
        mean, square, slope = to_numpy(moments(jnp.asarray(q)))
    np.testing.assert_allclose(square, act.dual(name)(q, q, 1.0), rtol=1e-13)
    np.testing.assert_allclose(slope, act.dual_derivative(name)(q, q, 1.0), rtol=1e-13)
    # At correlation 0 the kernel is the square of the mean.
    np.testing.assert_allclose(np.square(mean), act.dual(name)(q, q, 0.0), rtol=1e-13, atol=1e-18)


def test_equal_variances_take_one_expansion():
    q, c = np.full(8, 3.0), tokens()[1]
    nearly = np.where(np.arange(8) == 7, np.nextafter(3.0, 4.0), 3.0)
    with jax.enable_x64(True):
        plain, _ = kernels("tanh")
        fast, slow = (np.asarray(plain(jnp.asarray(v), jnp.asarray(c))) for v in (q, nearly))
    np.testing.assert_allclose(fast, slow, rtol=0, atol=64 * EPS)
