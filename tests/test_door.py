"""The door: every refusal names what, where, and the number; everything valid passes unchanged."""

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelprop import door

INDEFINITE = [[1, 0.9, 0.1], [0.9, 1, 0.9], [0.1, 0.9, 1]]


def test_asymmetry_is_refused_and_named_case_14():
    with pytest.raises(ValueError, match=r"entries \(0, 1\) and \(1, 0\) are 0.5 and 0.4, 0.1 apart"):
        door.kernel([[1, 0.5], [0.4, 1]])


def test_an_indefinite_kernel_is_refused_with_its_eigenvalue_case_15():
    with pytest.raises(ValueError, match=r"the smallest eigenvalue is -0.2237739202857\b"):
        door.kernel(INDEFINITE)
    assert door.kernel(INDEFINITE, eigenvalue_test=False).shape == (3, 3)


def test_a_correlation_above_one_is_refused_case_26():
    with pytest.raises(ValueError, match=r"positions 0 and 1: entry 26.1 exceeds sqrt\(q_0 q_1\) = 26;"):
        door.kernel([[26, 26.1], [26.1, 26]])
    with pytest.raises(ValueError, match=r"positions 0 and 1: entry -26\.1 exceeds"):
        door.kernel([[26, -26.1], [-26.1, 26]])
    door.kernel([[26.0, 26.0], [26.0, 26.0]])


def test_a_few_ulp_are_rounding_case_26():
    for dtype in (np.float32, np.float64):
        excess = 1 + 4 * np.finfo(dtype).eps
        kernel = np.array([[1, excess], [1, 1]], dtype)
        assert door.kernel(kernel) is kernel
        with pytest.raises(ValueError, match=r"not symmetric|exceeds"):
            door.kernel(np.array([[1, 1 + 1e-5], [1 + 1e-5, 1]], dtype))


def test_a_hundred_layers_by_hand_are_rounding():
    length = 64
    mixing = 0.9 * np.eye(length) + 0.1 * np.ones((length, length)) / length
    average = np.tril(np.ones((length, length))) / np.arange(1, length + 1)[:, None]
    for attention in (mixing, average):
        kernel = np.eye(length)
        for _ in range(100):
            kernel = attention @ kernel @ attention.T
            door.kernel(kernel)


def test_float64_stays_float64_case_60():
    kernel = np.array([[1.0, 0.999999999999], [0.999999999999, 1.0]])
    assert door.kernel(kernel) is kernel
    assert door.real_array(np.ones(2, np.float32), "x").dtype == np.float32


@pytest.mark.parametrize("dtype", ["float16", "longdouble", "complex128", "bool", "U3", "object"])
def test_other_types_are_refused_case_61(dtype):
    with pytest.raises(ValueError, match=r"kernel: dtype \S+ is not supported; use float32 or float64"):
        door.kernel(np.ones((2, 2)).astype(dtype))


def test_bfloat16_is_refused_case_61():
    with pytest.raises(ValueError, match="dtype bfloat16 is not supported"):
        door.real_array(jnp.ones(2, jnp.bfloat16), "x")


@pytest.mark.parametrize(("dtype", "wider"), [("float16", "float32"), (jnp.bfloat16, "float32"), ("g", "float64")])
def test_the_way_out_of_another_float_is_said_case_61(dtype, wider):
    with pytest.raises(ValueError, match=rf'use float32 or float64, as of \.astype\("{wider}"\)'):
        door.real_array(np.ones(2, dtype), "x")
    with pytest.raises(ValueError, match=r"use float32 or float64$"):
        door.real_array(np.ones(2, complex), "x")


@pytest.mark.parametrize("dtype", ["int8", "int64", "uint16"])
def test_integers_become_float64_case_61(dtype):
    assert door.kernel(np.eye(3, dtype=dtype)).dtype == np.float64


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.ones((2, 3)), r"shape \(2, 3\) is not \(\.\.\., T, T\)"),
        (np.ones(4), r"shape \(4,\) is not"),
        (np.ones((0, 0)), r"shape \(0, 0\) is not"),
        (1.0, r"shape \(\) is not"),
        ([[1, 2], [3]], "the rows have different lengths"),
        ([[1.0, np.nan], [np.nan, 1.0]], r"entry \(0, 1\) is nan; every entry must be finite"),
        ([[np.inf, 0.0], [0.0, 1.0]], r"entry \(0, 0\) is inf"),
        ([[1.0, 0.0], [0.0, -0.5]], r"position 1: the diagonal is -0.5; it can't be negative"),
        ([[0.0, 0.1], [0.1, 1.0]], r"positions 0 and 1: entry 0.1 exceeds sqrt\(q_0 q_1\) = 0;"),
        (None, "dtype object is not supported"),
        ("abc", "dtype <U3 is not supported"),
    ],
)
def test_what_is_no_kernel_is_named(value, message):
    with pytest.raises(ValueError, match=f"kernel: {message}") as error:
        door.kernel(value)
    assert "\n" not in str(error.value)


def test_the_bad_kernel_of_a_batch_is_named():
    batch = np.stack([np.eye(3)] * 6).reshape(2, 3, 3, 3)
    batch[1, 2] = INDEFINITE
    with pytest.raises(ValueError, match=r"kernel0\[1, 2\]: not positive semidefinite"):
        door.kernel(batch, "kernel0")


@given(st.integers(0, 10_000), st.sampled_from([1, 2, 9, 33]), st.sampled_from([1e-100, 1.0, 1e100]))
def test_gram_matrices_pass_however_they_were_formed(seed, width, scale):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((8, width))
    x[5], x[6] = x[1], -1.3 * x[2]
    x[7] = 0
    for dtype, size in ((np.float64, scale), (np.float32, 1.0)):
        rows = (size**0.5 * x).astype(dtype)
        for kernel in (rows @ rows.T, rows @ rows.T.copy(), np.einsum("ik,jk->ij", rows, rows)):
            assert door.kernel(kernel / dtype(width)).dtype == dtype


def test_the_zero_kernel_passes():
    door.kernel(np.zeros((3, 3)))


def test_the_eigenvalue_test_has_a_limit(monkeypatch):
    monkeypatch.setattr(door, "EIGENVALUE_TEST_LIMIT", 2)
    assert door.kernel(INDEFINITE).shape == (3, 3)


def test_places_count_layers_from_one():
    assert door.place(("layer", "head", "position"), (2, 0, 2)) == "layer 3, head 0, position 2"


@pytest.mark.parametrize(
    ("value", "message"),
    [(True, "True was given"), (1.0, "1.0 was given"), ("1", "'1' was given"), (0, "0 is too small; .* at least 1")],
)
def test_counts(value, message):
    with pytest.raises(ValueError, match=f"depth: .*{message}"):
        door.count(value, "depth")
    assert door.count(np.int64(3), "depth") == 3


def test_numbers():
    assert door.real_number(np.float32(0.5), "tau") == 0.5
    assert door.real_number(float("inf"), "gamma", allow_infinite=True) == float("inf")
    with pytest.raises(ValueError, match=r"gamma: nan; no entry may be nan"):
        door.real_number(float("nan"), "gamma", allow_infinite=True)
    with pytest.raises(ValueError, match="tau: inf; every entry must be finite"):
        door.real_number(float("inf"), "tau")
    with pytest.raises(ValueError, match=r"tau: one number is wanted, shape \(2,\) was given"):
        door.real_number([1, 2], "tau")
