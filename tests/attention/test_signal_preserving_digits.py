"""Signal-preserving attention keeps its digits where correlations are close to 1, or to each other.

The right values are Cholesky factors, and schedules, in mpmath at 60 digits.
"""

import mpmath
import numpy as np
import pytest

import kernelprop as kp

# A dozen roundings, and sums of terms of one sign: some units in the last place of every single entry.
RELATIVE = 16 * np.finfo(np.float64).eps
RHOS = [
    [0.3, 0.3 + 1e-12],
    [0.98, 0.99],
    [0.999999, 0.9999999],
    [1 - 1e-9, 1 - 1e-10],
    [0.1, 1 - 1e-14],
    [0.0, 1 - 2**-53],
    [1e-18, 0.9],
    [0.0, 1e-200],
    [0.6, 0.2],
    [1 - 1e-10, 1 - 1e-9],
]
NEXT_TO_ONE = [(64, 12, 1 - 1e-6), (64, 3, 1 - 1e-9), (512, 24, 0.99)]
GAMMAS = [
    [2, 2 - 1e-9],
    [2, 2 + 1e-9],
    [1.1, 1.1 - 1e-12],
    [5, 5 - 1e-7],
    [0.01, 0.01 + 1e-10],
    [np.inf, 0.3],
    [50, 3],
    [np.inf, 20],
]


def equicorrelated(rho):
    return lambda lag: mpmath.mpf(rho) if lag else mpmath.mpf(1)


def exponential(gamma):
    return lambda lag: mpmath.exp(-mpmath.mpf(gamma) * lag) if lag else mpmath.mpf(1)


def factor_quotient(length, before, after):
    """``F' F⁻¹`` of two kernels, functions of the lag."""
    with mpmath.workdps(60):
        old, new = (
            mpmath.cholesky(mpmath.matrix([[kernel(abs(i - j)) for j in range(length)] for i in range(length)]))
            for kernel in (before, after)
        )
        return np.tril(np.array((new * mpmath.inverse(old)).tolist(), dtype=np.float64))


# Case 17, for correlations.
@pytest.mark.parametrize("rhos", RHOS)
def test_every_uspa_entry_keeps_its_digits(rhos):
    right = factor_quotient(12, *map(equicorrelated, rhos))
    for length in (1, 2, 3, 12):
        matrix = kp.uspa(length, rhos=rhos, require_nonnegative=False).as_matrix()[0]
        np.testing.assert_allclose(matrix, right[:length, :length], rtol=RELATIVE)


# Case 17, for correlations.
def test_uspa_rhos_next_to_each_other():
    matrix = kp.uspa(2, rhos=[1 - 1e-9, 1 - 1e-10]).as_matrix()[0]
    np.testing.assert_allclose(matrix[1, 0], 0.68377221657, rtol=2e-11)
    np.testing.assert_array_equal(kp.uspa(3, rhos=[0, 0, 0.5, 0.5]).as_matrix()[[0, 2]], [np.eye(3)] * 2)


def test_factors_in_floating_point_do_not_pass():
    """A negative control: what the tolerance above must refuse."""
    for rhos in RHOS[:2]:
        right = factor_quotient(3, *map(equicorrelated, rhos))
        old, new = (np.linalg.cholesky((1 - rho) * np.eye(3) + rho) for rho in rhos)
        assert abs((new @ np.linalg.inv(old))[2, 1] - right[2, 1]) > 4 * RELATIVE * right[2, 1]


# Case 17, for correlations.
@pytest.mark.parametrize(("length", "depth", "rho"), NEXT_TO_ONE[:2])
def test_uspa_matrices_hit_a_correlation_next_to_one(length, depth, rho):
    kernel = np.eye(length)
    for matrix in kp.uspa(length, depth, rho).as_matrix():
        kernel = matrix @ kernel @ matrix.T
    np.testing.assert_allclose(kernel, np.where(np.eye(length), 1, rho), rtol=0, atol=1e-14)


# Case 17, for correlations: the same by prefix sums.
@pytest.mark.slow
@pytest.mark.parametrize(("length", "depth", "rho"), NEXT_TO_ONE)
def test_uspa_hits_a_correlation_next_to_one(length, depth, rho):
    transformer = kp.Transformer(kp.uspa(length, depth, rho))
    kernel = kp.propagate(transformer, kp.kernels.identity(length), keep="last").kernels[-1]
    np.testing.assert_allclose(kernel, np.where(np.eye(length), 1, rho), rtol=0, atol=1e-14)


# Case 17, for correlations: the symmetric root's two weights.
@pytest.mark.parametrize("rhos", RHOS[:4])
def test_the_symmetric_root_keeps_its_digits(rhos):
    length = 12
    with mpmath.workdps(60):
        r, s = map(mpmath.mpf, rhos)
        common = mpmath.sqrt((1 + (length - 1) * s) / (1 + (length - 1) * r))
        right = float((common - mpmath.sqrt((1 - s) / (1 - r))) / length)
    matrix = kp.uspa(length, rhos=rhos, causal=False).as_matrix()[0]
    np.testing.assert_allclose(matrix[0, 1:], right, rtol=RELATIVE)


# Case 17, above 1.
@pytest.mark.parametrize("gammas", GAMMAS)
def test_every_espa_entry_keeps_its_digits(gammas):
    right = factor_quotient(4, *map(exponential, gammas))
    matrix = kp.espa(4, gammas=gammas, require_nonnegative=False).as_matrix()[0]
    np.testing.assert_allclose(matrix, right, rtol=RELATIVE)


# Case 17, above 1.
def test_espa_rates_next_to_each_other():
    matrix = kp.espa(4, gammas=[2, 2 - 1e-9]).as_matrix()[0]
    np.testing.assert_allclose(matrix[2, 0], 1.865736193565e-11, rtol=1e-12)
    matrix = kp.espa(4, gammas=[1.1, 1.1 - 1e-12]).as_matrix()[0]
    np.testing.assert_allclose(matrix[3, 0], 4.148288051548e-14, rtol=1e-12)


# Cases 06 and 19.
def test_a_decay_rate_that_rises_to_infinity():
    operator = kp.espa(3, gammas=[0.5, np.inf], require_nonnegative=False)
    size, below = 1 / np.sqrt(-np.expm1(-1)), -0.762873978366890
    right = np.array([[1, 0, 0], [below, size, 0], [0, below, size]])
    np.testing.assert_allclose(operator.as_matrix()[0], right, rtol=1e-14)
    with pytest.raises(ValueError, match=r"gamma rises from 0\.5 to inf, .*\(1, 0\) would be -0\.762873978367;"):
        kp.espa(3, gammas=[0.5, np.inf])


@pytest.mark.slow
def test_a_decay_rate_that_rises_to_infinity_by_prefix_sums():
    operator = kp.espa(24, gammas=[0.5, np.inf], require_nonnegative=False)
    kernel = kp.propagate(kp.Transformer(operator), kp.kernels.exponential(24, 0.5)).kernels[-1]
    np.testing.assert_allclose(kernel, np.eye(24), atol=1e-14)


# Case 17, for schedules.
@pytest.mark.parametrize("ends", [(0.005, np.inf), (2, 5), (15, 18), (20, 50), (20, np.inf)])
def test_the_espa_schedule_keeps_its_digits(ends):
    with mpmath.workdps(60):
        log_end, log_start = (mpmath.log(1 - mpmath.exp(-2 * mpmath.mpf(gamma))) for gamma in ends)
        logs = [log_start + (log_end - log_start) * layer / 4 for layer in (1, 2, 3)]
        right = [float(-mpmath.log(1 - mpmath.exp(log)) / 2) for log in logs]
    np.testing.assert_allclose(kp.espa_schedule(4, *ends)[1:-1], right, rtol=RELATIVE)


# Case 17, for schedules: 1 − ρ is as good as the float64 next to ρ allows.
@pytest.mark.parametrize("ends", [(0.8, 0.0), (1 - 1e-9, 0.0), (1 - 1e-12, 1 - 1e-9), (1e-12, 0.0)])
def test_the_uspa_schedule_keeps_its_digits(ends):
    with mpmath.workdps(60):
        log_end, log_start = (mpmath.log(1 - mpmath.mpf(rho)) for rho in ends)
        right = [float(1 - mpmath.exp(log_start + (log_end - log_start) * layer / 4)) for layer in (1, 2, 3)]
    np.testing.assert_allclose(kp.uspa_schedule(4, *ends)[1:-1], right, rtol=2 * np.finfo(np.float64).eps)


@pytest.mark.parametrize("ends", [(np.inf, np.inf), (1e308, np.inf), (1.2e308, 1.5e308)])
def test_rates_without_correlation_are_the_identity_in_every_layer(ends):
    np.testing.assert_array_equal(kp.espa(2, 2, *ends).as_matrix(), [np.eye(2)] * 2)


# A difference of logits beyond the largest number.
def test_softmax_of_logits_at_the_end_of_the_range():
    operator = kp.softmax_attention([[1e308, -1e308], [0.0, 0.0]])
    np.testing.assert_array_equal(operator.as_matrix(), [[1, 0], [0.5, 0.5]])


@pytest.mark.parametrize("make", [kp.espa, kp.uspa])
@pytest.mark.parametrize(
    ("depth", "message"),
    [(0, "depth: 0 is too small; it must be at least 1"), (False, "depth: a whole number is wanted, False was given")],
)
def test_a_depth_of_zero_is_refused(make, depth, message):
    name = make.__name__
    with pytest.raises(ValueError, match=f"{name}: {message}"):
        make(3, depth)
    with pytest.raises(ValueError, match=f"{name}: {message}"):
        make(3, depth, **{"gammas" if name == "espa" else "rhos": [0.5, 0.5]})
