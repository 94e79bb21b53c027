"""Observables against closed forms and the reported cases."""

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelprop import observables as obs

EPS = np.finfo(np.float64).eps


def gram(seed, length=5, width=7):
    x = np.random.default_rng(seed).standard_normal((length, width))
    return x @ x.T / width


def equicorrelated(length, rho):
    return (1 - rho) * np.eye(length) + rho * np.ones((length, length))


KERNEL_SCALARS = [
    obs.mean_correlation,
    obs.mean_cosine,
    obs.diagonal_mean,
    obs.diagonal_minimum,
    obs.diagonal_maximum,
    obs.rank_residual,
    obs.participation_ratio,
    obs.effective_rank,
    obs.stable_rank,
    obs.eigenvalue_gap,
    obs.eigenvalue_ratio,
    obs.singular_effective_rank,
    obs.singular_participation_ratio,
    obs.singular_sum_over_maximum,
    obs.threshold_rank,
    obs.centred_participation_ratio,
    obs.centred_effective_rank,
    obs.centred_stable_rank,
]
scalars = pytest.mark.parametrize("function", KERNEL_SCALARS, ids=lambda f: f.__name__)


@scalars
def test_batches_are_read_kernel_by_kernel(function):
    batch = np.stack([gram(i) for i in range(6)]).reshape(2, 3, 5, 5)
    together = function(batch)
    assert together.shape == (2, 3)
    for i, j in np.ndindex(2, 3):
        np.testing.assert_allclose(together[i, j], function(batch[i, j]), rtol=1e-12)


@scalars
def test_numpy_is_answered_in_its_own_precision(function):
    for dtype in ("float32", "float64"):
        answer = function(gram(0).astype(dtype))
        assert isinstance(answer, np.ndarray)
        assert answer.dtype == dtype
    assert function(np.eye(5, dtype=int)).dtype == np.float64


@scalars
def test_traceable_in_a_scan(function):
    batch = np.stack([gram(i) for i in range(3)])
    with jax.enable_x64(True):
        _, scanned = jax.lax.scan(lambda carry, s: (carry, function(s)), 0, jnp.asarray(batch))
        assert isinstance(scanned, jax.Array)
        np.testing.assert_allclose(np.asarray(scanned), [function(kernel) for kernel in batch], rtol=1e-12)


@scalars
def test_ranks_and_correlations_of_the_zero_kernel_are_undefined_case_52(function):
    value = function(np.zeros((5, 5)))
    if function in (obs.diagonal_mean, obs.diagonal_minimum, obs.diagonal_maximum):
        assert value == 0
    else:
        assert np.isnan(value)
    assert obs.undefined_tokens(np.zeros((5, 5))).all()


RANKS = [
    obs.participation_ratio,
    obs.effective_rank,
    obs.stable_rank,
    obs.singular_effective_rank,
    obs.singular_participation_ratio,
    obs.singular_sum_over_maximum,
    obs.threshold_rank,
]


@pytest.mark.parametrize("function", RANKS, ids=lambda f: f.__name__)
def test_one_direction_has_rank_exactly_one_case_52(function):
    assert function(np.diag([1.0, 0.0, 0.0, 0.0, 0.0])) == 1
    # Not diagonal: eigenvalues that are 0 only to within rounding must not count.
    np.testing.assert_allclose(function(np.ones((5, 5))), 1, rtol=1e-12)


def test_which_rank_case_51():
    kernel = np.diag([4.0, 0.0, 9.0, 1.0])
    wanted = {
        obs.singular_effective_rank: 2.74945927399721,
        obs.effective_rank: 2.29440078242065,
        obs.participation_ratio: 2,
        obs.singular_participation_ratio: 2.57142857142857,
        obs.stable_rank: 1.55555555555556,
        obs.singular_sum_over_maximum: 2,
        obs.threshold_rank: 3,
    }
    for function, value in wanted.items():
        np.testing.assert_allclose(function(kernel), value, rtol=1e-13, err_msg=function.__name__)
    np.testing.assert_allclose(obs.singular_values(kernel), [3, 2, 1, 0], atol=1e-14)
    assert obs.threshold_rank(kernel, threshold=0.5) == 2
    assert obs.participation([9.0, 4.0, 1.0, 0.0]) == 2


def test_definitions_are_there_to_be_printed_case_51():
    ranks = [name for name in obs.DEFINITIONS if "rank" in name or "participation" in name]
    assert len({obs.DEFINITIONS[name] for name in ranks}) == len(ranks)
    assert all(hasattr(obs, name) for name in obs.DEFINITIONS)
    assert all("\n" not in line for line in obs.DEFINITIONS.values())
    assert {f.__name__ for f in KERNEL_SCALARS} - obs.DEFINITIONS.keys() == {
        "mean_cosine",
        "diagonal_mean",
        "diagonal_minimum",
        "diagonal_maximum",
    }


def test_centred_or_not_case_53():
    kernel = equicorrelated(4, 0.999)
    np.testing.assert_allclose(obs.participation_ratio(kernel), 1.00150150112556, rtol=1e-13)
    np.testing.assert_allclose(obs.effective_rank(kernel), 1.00699460468298, rtol=1e-13)
    np.testing.assert_allclose(obs.stable_rank(kernel), 1.00075056292219, rtol=1e-13)
    for function in (
        obs.centred_participation_ratio,
        obs.centred_effective_rank,
        obs.centred_stable_rank,
    ):
        np.testing.assert_allclose(function(kernel), 3, rtol=1e-11)
        np.testing.assert_allclose(function(kernel, obs.centre(kernel)), 3, rtol=1e-11)
    # The functions compose with `centre`, and what rounding hides is undefined rather than some rank.
    np.testing.assert_allclose(obs.effective_rank(obs.centre(kernel)), 3, rtol=1e-11)
    assert np.isnan(obs.centred_participation_ratio(0.3 * np.ones((7, 7))))


def test_correlation_just_above_one_is_rounding_case_26():
    kernel = np.full((2, 2), 26.0)
    assert 26 / (np.sqrt(26.0) * np.sqrt(26.0)) > 1
    assert (obs.correlation(kernel) == 1).all()
    for excess in (1 + EPS, 1 + 4 * EPS):
        assert obs.correlation([[1.0, excess], [excess, 1.0]])[0, 1] == 1
        assert obs.correlation([[1.0, -excess], [-excess, 1.0]])[0, 1] == -1


def test_correlation_above_one_is_refused_case_26():
    with pytest.raises(ValueError, match=r"positions 0 and 1: entry 26\.1 exceeds sqrt\(q_0 q_1\) = 26"):
        obs.correlation([[26.0, 26.1], [26.1, 26.0]])
    # Inside a trace nothing can be refused, and nothing is clipped.
    assert jax.jit(obs.correlation)(jnp.asarray([[26.0, 26.1], [26.1, 26.0]]))[0, 1] > 1.003


def test_correlation_close_to_one_keeps_its_digits_case_60():
    kernel = np.array([[1.0, 0.999999999999], [0.999999999999, 1.0]])
    np.testing.assert_allclose(1 - obs.correlation(kernel)[0, 1], 1e-12, rtol=1e-4)
    np.testing.assert_allclose(1 - obs.mean_correlation(kernel), 1e-12, rtol=1e-4)


def test_correlation_of_very_large_and_small_kernels():
    for scale in (1e-280, 1e280):
        np.testing.assert_allclose(obs.correlation(scale * equicorrelated(3, 0.25)), equicorrelated(3, 0.25))
        np.testing.assert_allclose(obs.participation_ratio(scale * np.eye(3)), 3)


def test_a_zero_token_has_no_correlation_case_09():
    kernel = np.array([[0.5, 0.5, 0.0], [0.5, 0.5, 0.0], [0.0, 0.0, 0.0]])
    c = obs.correlation(kernel)
    np.testing.assert_array_equal(obs.undefined_tokens(kernel), [False, False, True])
    assert (c[:2, :2] == 1).all()
    assert np.isnan(c[2]).all()
    assert np.isnan(c[:, 2]).all()
    assert np.isnan(obs.mean_correlation(kernel))


def test_one_position_has_no_pairs():
    assert np.isnan(obs.mean_correlation([[2.0]]))
    assert np.isnan(obs.eigenvalue_gap([[2.0]]))
    assert obs.rank_residual([[2.0]]) == 0
    assert obs.effective_rank([[2.0]]) == 1


def test_mean_correlation_by_hand():
    kernel = np.array([[4.0, 1.0, 0.0], [1.0, 1.0, -0.5], [0.0, -0.5, 0.25]])
    np.testing.assert_allclose(obs.mean_correlation(kernel), (0.5 + 0 - 1) / 3, rtol=1e-14)
    np.testing.assert_array_equal(obs.diagonal(kernel), [4, 1, 0.25])
    assert (obs.diagonal_minimum(kernel), obs.diagonal_maximum(kernel)) == (0.25, 4)
    assert obs.diagonal_mean(kernel) == 1.75


@given(st.floats(-0.49, 1.0), st.sampled_from([2, 3, 12]))
def test_equicorrelated_closed_forms(rho, length):
    rho = max(rho, -0.99 / (length - 1))
    kernel = equicorrelated(length, rho)
    np.testing.assert_allclose(obs.mean_correlation(kernel), rho, atol=1e-15, rtol=1e-13)
    residual = np.sqrt((1 - rho) * (length - 1) / length)
    np.testing.assert_allclose(obs.rank_residual(kernel), residual, rtol=1e-12, atol=3e-8)
    ratio = length / (1 + (length - 1) * rho**2)
    np.testing.assert_allclose(obs.participation_ratio(kernel), ratio, rtol=1e-12)
    top = max(1 + (length - 1) * rho, 1 - rho)
    np.testing.assert_allclose(obs.stable_rank(kernel), length / top, rtol=1e-12)


@given(st.integers(0, 10_000))
def test_effective_rank_against_mpmath(seed):
    kernel = gram(seed)
    with mpmath.workdps(30):
        values = mpmath.eigsy(mpmath.matrix(kernel.tolist()), eigvals_only=True)
        total = sum(values)
        wanted = mpmath.exp(-sum(v / total * mpmath.log(v / total) for v in values))
        np.testing.assert_allclose(obs.effective_rank(kernel), float(wanted), rtol=1e-12)
    np.testing.assert_allclose(obs.eigenvalues(kernel), sorted(map(float, values), reverse=True), rtol=1e-10)


@given(st.integers(0, 10_000))
def test_observables_do_not_depend_on_the_order_of_positions(seed):
    kernel = gram(seed)
    order = np.random.default_rng(seed).permutation(5)
    for function in KERNEL_SCALARS:
        np.testing.assert_allclose(function(kernel[order][:, order]), function(kernel), rtol=1e-9)


def test_gap_of_a_spectrum_with_one_direction_case_64():
    kernel = np.diag([9.0, 0.0, 0.0])
    assert obs.eigenvalue_gap(kernel) == np.inf
    assert obs.eigenvalue_ratio(kernel) == 0
    assert obs.first_over_second([3.0, 0.0, 0.0]) == np.inf
    assert obs.second_over_first([3.0, 0.0, 0.0]) == 0
    # Rounding of a zero eigenvalue is no gap of 1e16.
    assert obs.eigenvalue_gap(np.ones((5, 5))) == np.inf
    assert obs.eigenvalue_gap(np.diag([1.0, 8.0, 2.0])) == 4


def test_composite_norm_case_55():
    np.testing.assert_allclose(obs.composite_norm([[1, -2], [3, 4]]), np.sqrt(42), rtol=1e-15)
    x = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
    np.testing.assert_allclose(obs.composite_norm(x - x.mean(0)), 1.15470053837925, rtol=1e-14)
    assert obs.composite_norm(np.zeros((3, 2))) == 0


@pytest.mark.parametrize("scale", [1e-300, 1e-170, 1e170, 1e307])
def test_composite_norm_and_entropy_at_the_ends_of_the_range(scale):
    """Both are of one degree in their matrix, whose squares and sums may be no numbers."""
    np.testing.assert_allclose(obs.composite_norm(scale * np.array([[1, -2], [3, 4]])), scale * np.sqrt(42), rtol=1e-14)
    np.testing.assert_allclose(obs.composite_norm([[8 * scale], [8 * scale]]), 8 * scale * np.sqrt(2), rtol=1e-14)
    np.testing.assert_allclose(obs.attention_entropy([[15 * scale, 15 * scale]]), np.log(2), rtol=1e-14)


def test_composite_norm_has_a_finite_slope_at_zero_and_at_tiny_residuals():
    slope = jax.jit(jax.grad(obs.composite_norm))
    with jax.enable_x64(True):
        for residual in (np.zeros((2, 2)), np.array([[1.0, -2.0], [3.0, 4.0]])):
            at = slope(jnp.asarray(residual))
            np.testing.assert_allclose(slope(jnp.asarray(1e-170 * residual)), at, rtol=1e-13)
            # Euler: of degree 1, a function is its slope times its argument.
            np.testing.assert_allclose(np.sum(at * residual), obs.composite_norm(residual), rtol=1e-13)


def test_attention_entropy_case_56():
    uniform = np.tril(np.ones((4, 4)))
    wanted = [0, 0.693147180559945, 1.09861228866811, 1.38629436111989]
    # A = D P has other row sums; its entropy is that of P.
    for attention in (uniform, uniform / uniform.sum(1, keepdims=True), np.diag([1.0, 2, 3, 4]) @ uniform):
        np.testing.assert_allclose(obs.attention_entropy(attention), wanted, rtol=1e-14, atol=0)
        np.testing.assert_allclose(obs.mean_attention_entropy(attention), np.log(24) / 4, rtol=1e-14)
    assert obs.attention_entropy(np.stack([uniform] * 6).reshape(2, 3, 4, 4)).shape == (2, 3, 4)


def test_attention_entropy_without_a_distribution_is_undefined():
    entropy = obs.attention_entropy([[0.0, 0.0], [0.5, 0.5], [1.5, -0.5]])
    assert np.isnan(entropy[[0, 2]]).all()
    assert entropy[1] == pytest.approx(np.log(2))


def test_attention_entropy_has_a_finite_slope_at_masked_keys_case_56():
    slope = jax.jit(jax.grad(lambda a: obs.attention_entropy(a).sum()))(jnp.tril(jnp.ones((4, 4))))
    assert np.isfinite(slope).all()


def test_collapse_below_rounding_case_57():
    length, mixing = 4, 0.9
    for layers, wanted in ((100, 2.1165237325966e-9), (200, 1.493224236881548e-18)):
        # tr(C S C) = 3 · 0.9^(2 L): the common part is 11'/4 all along.
        centred = mixing ** (2 * layers) * (np.eye(length) - 1 / length)
        kernel = centred + np.full((length, length), 1 / length)
        np.testing.assert_allclose(np.trace(centred), wanted, rtol=1e-12)
        residual = np.sqrt(wanted / np.trace(kernel))
        np.testing.assert_allclose(obs.rank_residual(kernel, centred), residual, rtol=1e-12)
        by_parts = obs.rank_residual_from_parts(centred, np.trace(kernel))
        np.testing.assert_allclose(by_parts, residual, rtol=1e-12)
    # From the sum alone the first keeps six digits, and the second is below the floor.
    kernel = mixing**200 * (np.eye(4) - 1 / 4) + 1 / 4
    np.testing.assert_allclose(obs.rank_residual(kernel) ** 2, 2.1165237325966e-9, rtol=1e-6)
    assert obs.rank_residual(1 / 4 + 1e-18 * np.eye(4)) < obs.rank_residual_floor("float64")


@given(st.sampled_from([2, 3, 17, 40]), st.floats(0.01, 100))
def test_equal_rows_stay_below_the_floor(length, scale):
    for dtype in (np.float32, np.float64):
        kernel = np.full((length, length), scale, dtype)
        assert obs.rank_residual(kernel) <= obs.rank_residual_floor(dtype)


def test_centring_does_not_lose_a_small_part():
    length, small = 64, 1e-6
    difference = gram(3, length)
    kernel = 1 + small * difference
    projector = np.eye(length) - 1 / length
    exact = small * projector @ difference @ projector
    np.testing.assert_allclose(obs.centre(kernel), exact, atol=8 * EPS)
    assert abs(obs.centre(kernel).sum(0)).max() < 1e-20


def test_rank_residual_at_equal_rows_is_zero_with_slope_zero_case_38():
    def residual(x):
        return obs.rank_residual(x @ x.T / x.shape[1])

    equal = jnp.ones((3, 4))
    assert jax.jit(residual)(equal) == 0
    np.testing.assert_array_equal(jax.jit(jax.grad(residual))(equal), np.zeros((3, 4)))


@scalars
def test_slopes_are_finite_at_the_identity(function):
    slope = jax.jit(jax.grad(lambda s: function(s).sum()))(jnp.eye(4))
    assert np.isfinite(slope).all()


def test_slope_of_the_mean_correlation_at_correlation_one():
    def mean(c):
        kernel = jnp.stack([jnp.stack([jnp.ones(()), c]), jnp.stack([c, jnp.ones(())])])
        return obs.mean_correlation(kernel)

    assert jax.jit(jax.grad(mean))(1.0) == 1


def test_what_is_no_kernel_is_refused():
    with pytest.raises(ValueError, match=r"kernel: shape \(2, 3\) is not"):
        obs.rank_residual(np.ones((2, 3)))
    with pytest.raises(ValueError, match=r"entry \(0, 1\) is nan"):
        obs.effective_rank([[1.0, float("nan")], [0.0, 1.0]])
    # An indefinite matrix passes the cheap checks; its ranks are undefined.
    indefinite = [[1, 0.9, 0.1], [0.9, 1, 0.9], [0.1, 0.9, 1]]
    assert obs.eigenvalues(indefinite)[-1] == pytest.approx(-0.2237739202857)
    assert np.isnan(obs.effective_rank(indefinite))
    assert np.isnan(obs.singular_effective_rank(indefinite))
