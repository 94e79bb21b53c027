"""Every operator equals its own matrix, forward, transposed and as a map of kernels."""

import importlib
import pkgutil

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kernelprop as kp
import kernelprop.attention
from kernelprop.attention.layer import AttentionLayer, sandwich, sandwich_transposed
from kernelprop.attention.stack import AttentionStack
from tests.attention.registry import LENGTH, OPERATORS

every_operator = pytest.mark.parametrize("name", OPERATORS)


def layers_of(operator):
    return list(operator) if operator.depth else [operator]


def mean_sandwich(matrices, kernel):
    product = matrices @ kernel @ np.swapaxes(matrices, -1, -2)
    return product.mean(0) if matrices.ndim == 3 else product


@every_operator
def test_acts_as_its_matrix(name):
    operator = OPERATORS[name]()
    x = np.random.default_rng(0).normal(size=(operator.length, 4))
    matrices = operator.as_matrix()
    np.testing.assert_allclose(operator.matmul(x), matrices @ x, atol=1e-12)
    np.testing.assert_allclose(operator.rmatmul(x), np.swapaxes(matrices, -1, -2) @ x, atol=1e-12)


@every_operator
def test_matmul_and_rmatmul_are_adjoint(name):
    operator = OPERATORS[name]()
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(2, operator.length, 1))
    left = np.sum(operator.matmul(x) * y, axis=(-1, -2))
    right = np.sum(x * operator.rmatmul(y), axis=(-1, -2))
    np.testing.assert_allclose(left, right, atol=1e-12)


@every_operator
def test_conjugation_equals_the_dense_products(name):
    operator = OPERATORS[name]()
    kernel = np.random.default_rng(2).normal(size=(operator.length,) * 2)
    for layer in layers_of(operator):
        matrices = layer.as_matrix()
        np.testing.assert_allclose(layer.conjugate(kernel), mean_sandwich(matrices, kernel), atol=1e-12)
        transposed = mean_sandwich(np.swapaxes(matrices, -1, -2), kernel)
        np.testing.assert_allclose(layer.conjugate_transposed(kernel), transposed, atol=1e-12)


@every_operator
def test_the_engines_sandwich_equals_the_dense_products(name):
    operator = OPERATORS[name]()
    root = np.random.default_rng(3).normal(size=(operator.length,) * 2)
    kernel = root @ root.T / operator.length
    with jax.enable_x64(True):
        for layer in layers_of(operator):
            matrices = layer.as_matrix()
            scale = np.abs(matrices).max() ** 2 * operator.length
            forward = np.asarray(sandwich(layer, jnp.asarray(kernel)))
            backward = np.asarray(sandwich_transposed(layer, jnp.asarray(kernel)))
            np.testing.assert_allclose(forward, mean_sandwich(matrices, kernel), atol=1e-13 * scale)
            transposed = mean_sandwich(np.swapaxes(matrices, -1, -2), kernel)
            np.testing.assert_allclose(backward, transposed, atol=1e-13 * scale)


@every_operator
def test_float32_stays_float32_and_agrees(name):
    operator = OPERATORS[name]()
    x = np.random.default_rng(0).normal(size=(operator.length, 4)).astype(np.float32)
    acted = operator.matmul(x)
    assert acted.dtype == np.float32
    exact = operator.as_matrix() @ x.astype(np.float64)
    np.testing.assert_allclose(acted, exact, atol=32 * np.finfo(np.float32).eps * np.abs(exact).max())


@every_operator
def test_a_stack_is_its_layers(name):
    operator = OPERATORS[name]()
    if operator.depth is None:
        pytest.skip("one layer")
    kernel = np.eye(operator.length)
    assert len(operator) == operator.depth == len(list(operator))
    for index in (0, operator.depth - 1, -1):
        np.testing.assert_array_equal(operator[index].as_matrix(), operator.as_matrix()[index])
        # lax.map and one layer alone may round differently by an ulp.
        np.testing.assert_allclose(operator[index].conjugate(kernel), operator.conjugate(kernel)[index], atol=1e-14)
    with pytest.raises(IndexError, match="outside its"):
        operator[operator.depth]


def test_every_layer_of_the_package_is_in_the_registry():
    for module in pkgutil.iter_modules(kernelprop.attention.__path__):
        importlib.import_module(f"kernelprop.attention.{module.name}")
    registered = set()
    for make in OPERATORS.values():
        layer = layers_of(make())[0]
        registered.add(type(layer))
    assert set(AttentionLayer.__subclasses__()) == registered


@every_operator
def test_positive_semidefinite_stays_so(name):
    operator = OPERATORS[name]()
    root = np.random.default_rng(4).normal(size=(operator.length, 3))
    for layer in layers_of(operator):
        kernel = layer.conjugate(root @ root.T)
        assert np.linalg.eigvalsh(kernel)[0] >= -1e-12 * np.trace(kernel)


@given(permutation=st.permutations(range(LENGTH)))
@pytest.mark.parametrize("name", ["identity", "uniform", "uspa symmetric", "mix of uniform", "mix of mix"])
def test_symmetric_operators_commute_with_permutations(name, permutation):
    operator = OPERATORS[name]()
    kernel = np.cov(np.random.default_rng(5).normal(size=(LENGTH, 30)))
    moved = kernel[np.ix_(permutation, permutation)]
    for layer in layers_of(operator):
        expected = layer.conjugate(kernel)[np.ix_(permutation, permutation)]
        np.testing.assert_allclose(layer.conjugate(moved), expected, atol=1e-13)


@pytest.mark.slow  # a compilation a length
@given(length=st.sampled_from([1, 2, 3, 16, 65, 130]), log_gamma=st.floats(-6, 2), seed=st.integers(0, 99))
def test_prefix_sums_equal_the_matrix_at_every_length(length, log_gamma, seed):
    gamma = float(np.exp(log_gamma))
    x = np.random.default_rng(seed).normal(size=(length, 2))
    for operator in (kp.espa(length, gammas=[2 * gamma, gamma]), kp.uspa(length, rhos=[0.3, 0.7])):
        matrix = operator.as_matrix()[0]
        np.testing.assert_allclose(operator.matmul(x)[0], matrix @ x, atol=1e-12)
        np.testing.assert_allclose(operator.rmatmul(x)[0], matrix.T @ x, atol=1e-12)


def test_operators_run_inside_a_users_own_jit_and_grad():
    layer = kp.espa(LENGTH, 2)[0]
    x = jnp.ones((LENGTH, 3))
    gradient = jax.jit(jax.grad(lambda y: jnp.sum(layer.matmul(y))))(x)
    assert gradient.dtype == jnp.float32
    np.testing.assert_allclose(gradient[:, 0], layer.as_matrix().sum(0), rtol=1e-5)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: kp.dense(np.full((2, 2), np.nan)), r"position 0, column 0: nan is not finite"),
        (lambda: kp.dense([[[[0, 1], [np.inf, 1]]]]), r"layer 1, head 0, position 1, column 0: inf"),
        (lambda: kp.dense(np.ones((2, 3))), r"shape \(2, 3\) is not"),
        (lambda: kp.dense(np.ones((2, 2), np.float16)), r"float16 is not supported; use float32 or float64"),
        (lambda: kp.dense(np.ones((2, 2), np.longdouble)), r"use float32 or float64"),
        (lambda: kp.dense([["a", "b"], ["c", "d"]]), r"not supported"),
        (lambda: kp.identity(0), r"0 is too small"),
        (lambda: kp.uniform(2.5), r"a whole number is wanted, 2.5"),
        (lambda: kp.mix(kp.uniform(3), np.nan, 1.0), r"mix: alpha: nan"),
        (lambda: kp.mix(kp.espa(3, 4), [1.0, 2.0], 1.0), r"different depths: \[2, 4\]"),
        (lambda: kp.block_diagonal(kp.uniform(3), 0), r"copies: 0 is too small"),
        (lambda: kp.uniform(3).matmul(np.ones((4, 1))), r"\(4, 1\) does not fit attention over 3"),
    ],
)
def test_bad_input_is_refused_in_one_line(call, message):
    with pytest.raises(ValueError, match=message) as error:
        call()
    assert "\n" not in str(error.value)


def test_integers_are_promoted_to_float64():
    assert kp.dense(np.eye(2, dtype=np.int32)).as_matrix().dtype == np.float64


def test_a_stack_of_layers_of_different_depths_is_refused():
    layers = kp.mix(kp.uniform(3), [1.0, 2.0], 1.0).layers
    with pytest.raises(ValueError, match="different depths"):
        AttentionStack(type(layers)(layers.alpha, layers.beta[:1], layers.inner))


# Case 23: heads are averaged after the conjugation, never before.
def test_heads_are_averaged_after_squaring():
    operator = kp.dense(np.array([[np.eye(2), np.full((2, 2), 0.5)]]))
    np.testing.assert_allclose(operator.conjugate(np.eye(2))[0], [[0.75, 0.25], [0.25, 0.75]], atol=1e-15)
    fused = operator.as_matrix().mean(1)[0]
    assert abs((fused @ fused.T)[0, 0] - 0.75) > 0.1


# Case 21: layer 1 acts first.
def test_the_first_layer_acts_first():
    operator = kp.dense([[[1, 0], [0.5, 0.5]], [[0.25, 0.75], [0, 1]]])
    kernel = kp.propagate(kp.Transformer(operator), np.eye(2)).kernels[-1]
    np.testing.assert_allclose(kernel, [[17 / 32, 1 / 2], [1 / 2, 1 / 2]], atol=1e-15)
