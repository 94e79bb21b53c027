"""Input kernels: values by hand, validity at the edges, and what is refused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelprop import door, kernels, trust


@given(st.integers(1, 30), st.floats(0, 50), st.floats(0, 1), st.integers(0, 1000))
def test_every_kernel_is_valid_certified_and_float64(length, gamma, share, seed):
    rng = np.random.default_rng(seed)
    tokens = rng.integers(0, 5, length)
    rho = share if length == 1 else 1 - share * 0.999 * (1 + 1 / (length - 1))
    made = [
        kernels.identity(length),
        kernels.equicorrelated(length, rho),
        kernels.exponential(length, gamma),
        kernels.from_tokens(tokens, share),
        kernels.from_embedding(rng.standard_normal((5, 3)), tokens),
        kernels.from_inputs(rng.standard_normal((length, 3))),
        kernels.positional_sinusoidal(length, 6, amplitude=share),
        kernels.positional_learned(length, share),
    ]
    for kernel in made:
        assert kernel.shape == (length, length)
        assert kernel.dtype == np.float64
        assert trust.is_certified(kernel)
        door.kernel(kernel.copy())
        np.testing.assert_array_equal(kernel, kernel.T)


def test_exponential_at_infinity_is_the_identity_exactly_case_06():
    np.testing.assert_array_equal(kernels.exponential(3, float("inf")), np.eye(3))
    np.testing.assert_array_equal(kernels.exponential(3, np.inf), kernels.identity(3))


def test_exponential_by_loops():
    kernel = kernels.exponential(5, 0.2)
    wanted = [[np.exp(-0.2 * abs(i - j)) for j in range(5)] for i in range(5)]
    np.testing.assert_allclose(kernel, wanted, rtol=1e-15)
    np.testing.assert_array_equal(kernels.exponential(4, 0), np.ones((4, 4)))
    assert kernels.exponential(2, 1e-9)[0, 1] == np.exp(-1e-9)


def test_equicorrelated():
    np.testing.assert_array_equal(kernels.equicorrelated(2, -0.5), [[1, -0.5], [-0.5, 1]])
    np.testing.assert_array_equal(kernels.equicorrelated(3, 1), np.ones((3, 3)))
    # Down to the excluded bound; eigenvalues (1 - ρ) and 1 + (T - 1) ρ.
    kernel = kernels.equicorrelated(4, -1 / 3 + 1e-9)
    np.testing.assert_allclose(np.linalg.eigvalsh(kernel), [3e-9, 4 / 3, 4 / 3, 4 / 3], rtol=1e-6)


@pytest.mark.parametrize("rho", [-1 / 3, -0.4, 1 + 1e-12, float("nan"), float("-inf")])
def test_equicorrelated_beyond_its_bounds_is_refused_case_16(rho):
    with pytest.raises(ValueError, match="rho: ") as error:
        kernels.equicorrelated(4, rho)
    if np.isfinite(rho):
        assert str(error.value).endswith("it must be between -1/3 = -0.333333333333 (excluded) and 1")


def test_repeated_tokens_have_correlation_one():
    kernel = kernels.from_tokens(["the", "rank", "of", "the"], correlation=0.2)
    wanted = [[1, 0.2, 0.2, 1], [0.2, 1, 0.2, 0.2], [0.2, 0.2, 1, 0.2], [1, 0.2, 0.2, 1]]
    np.testing.assert_array_equal(kernel, wanted)
    np.testing.assert_array_equal(kernels.from_tokens(np.array([7, 3, 9, 7]), 0.2), wanted)
    np.testing.assert_array_equal(kernels.from_tokens([5, 5]), np.ones((2, 2)))
    # The bound is that of the different tokens, not of the positions.
    np.testing.assert_array_equal(kernels.from_tokens([1, 2, 1], -0.9), [[1, -0.9, 1], [-0.9, 1, -0.9], [1, -0.9, 1]])


def test_embedding_by_loops():
    rng = np.random.default_rng(0)
    embedding, tokens = rng.standard_normal((6, 8)), [4, 0, 4, 5]
    kernel = kernels.from_embedding(embedding, tokens)
    for i, a in enumerate(tokens):
        for j, b in enumerate(tokens):
            np.testing.assert_allclose(kernel[i, j], sum(embedding[a] * embedding[b]) / 8, rtol=1e-13)
    assert kernel[0, 2] == kernel[0, 0] == kernel[2, 2]
    assert kernels.from_embedding(embedding.astype(np.float32), tokens).dtype == np.float64


def test_inputs_are_divided_by_the_width_case_50():
    np.testing.assert_array_equal(kernels.from_inputs(np.ones((2, 4))), np.ones((2, 2)))
    np.testing.assert_array_equal(kernels.from_inputs([[1, 2], [3, 4]]), [[2.5, 5.5], [5.5, 12.5]])


def test_sinusoidal_positions_by_loops():
    length, width, amplitude, base = 5, 8, 1.5, 100.0
    table = np.zeros((length, width))
    for i in range(length):
        for k in range(width // 2):
            angle = i / base ** (2 * k / width)
            table[i, 2 * k], table[i, 2 * k + 1] = amplitude * np.sin(angle), amplitude * np.cos(angle)
    kernel = kernels.positional_sinusoidal(length, width, amplitude, base)
    np.testing.assert_allclose(kernel, table @ table.T / width, rtol=1e-13)
    np.testing.assert_allclose(np.diagonal(kernel), amplitude**2 / 2)


def test_positions_are_added():
    kernel = kernels.from_tokens(["a", "b", "a"])
    total = kernel + kernels.positional_learned(3, 0.5)
    np.testing.assert_array_equal(total, [[1.5, 0, 1], [0, 1.5, 0], [1, 0, 1.5]])
    assert not trust.is_certified(total)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: kernels.identity(0), "length: 0 is too small; it must be at least 1"),
        (lambda: kernels.identity(2.0), "length: a whole number is wanted, 2.0 was given"),
        (lambda: kernels.exponential(3, -0.1), r"gamma: -0.1 is negative; it must be at least 0"),
        (lambda: kernels.exponential(3, float("nan")), "gamma: nan"),
        (lambda: kernels.from_tokens([]), r"tokens: shape \(0,\) is not \(T,\)"),
        (lambda: kernels.from_tokens([[1, 2]]), r"tokens: shape \(1, 2\) is not \(T,\)"),
        (lambda: kernels.from_tokens("text"), r"tokens: shape \(\) is not"),
        (lambda: kernels.from_tokens([0.5, 1.0]), "whole numbers or text are wanted, float64 was given"),
        (lambda: kernels.from_tokens([1, 2, 3], -0.5), r"correlation: -0.5 for 3 different tokens; .* -1/2 = -0.5"),
        (lambda: kernels.from_embedding(np.eye(3), [0, 3]), "position 1: id 3 is outside 0 to 2"),
        (lambda: kernels.from_embedding(np.eye(3), [-1]), "position 0: id -1 is outside 0 to 2"),
        (lambda: kernels.from_embedding(np.eye(3), ["a"]), "tokens: ids are wanted"),
        (lambda: kernels.from_embedding(np.ones(3), [0]), r"embedding: shape \(3,\) is not \(V, d\)"),
        (lambda: kernels.from_inputs([[1.0, np.inf]]), r"inputs: entry \(0, 1\) is inf"),
        (lambda: kernels.from_inputs(np.ones((2, 2), np.float16)), "dtype float16 is not supported"),
        (lambda: kernels.from_inputs(np.ones((2, 0))), r"inputs: shape \(2, 0\) is not \(T, d\)"),
        (lambda: kernels.positional_sinusoidal(3, 5), "width: 5 is odd"),
        (lambda: kernels.positional_sinusoidal(3, 4, base=0), "base: 0 is not positive"),
        (lambda: kernels.positional_learned(3, -1), "variance: -1 is negative"),
    ],
)
def test_bad_input_is_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()
