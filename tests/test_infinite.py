"""The forward engine against closed forms and plain loops."""

import jax
import numpy as np
import pytest

import kernelprop as kp
from kernelprop import infinite
from tests.attention.registry import OPERATORS

# One of every way to act; the rest of the registry, a compilation each, is left to the slow run.
QUICK = ("dense heads", "sliding window", "espa", "uspa", "mix of causal uniform", "blocks of heads")


def loop(matrices, kernel, residual=None):
    """The recursion in numpy, layer by layer, from its formula."""
    kernels = [kernel]
    for index, heads in enumerate(matrices):
        heads = heads[None] if heads.ndim == 2 else heads
        branch = np.mean([a @ kernels[-1] @ a.T for a in heads], axis=0)
        alpha, beta = (0.0, 1.0) if residual is None else (residual[0][index], residual[1][index])
        kernels.append(alpha**2 * kernels[-1] + beta**2 * branch)
    return np.array(kernels)


def positive(length, seed=0):
    root = np.random.default_rng(seed).normal(size=(length, length + 2))
    return root @ root.T / length


@pytest.mark.parametrize("name", [n if n in QUICK else pytest.param(n, marks=pytest.mark.slow) for n in OPERATORS])
def test_the_scan_equals_a_loop(name):
    operator = OPERATORS[name]()
    model = kp.Transformer(operator, residual=kp.Residual(attention=(0.6, 0.8)))
    kernel = positive(operator.length)
    matrices = operator.as_matrix() if operator.depth else operator.as_matrix()[None]
    weights = (np.full(model.depth, 0.6), np.full(model.depth, 0.8))
    evolution = kp.propagate(model, kernel)
    expected = loop(matrices, kernel, weights)
    np.testing.assert_allclose(evolution.kernels, expected, rtol=1e-11, atol=1e-11 * np.abs(expected).max())
    correlation = kp.observables.mean_correlation(expected)
    np.testing.assert_allclose(evolution.mean_correlation, correlation, rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(evolution.rank_residual, kp.observables.rank_residual(expected), rtol=1e-9)
    np.testing.assert_allclose(evolution.participation_ratio, kp.observables.participation_ratio(expected), rtol=1e-11)
    np.testing.assert_allclose(evolution.diagonal, np.diagonal(expected, axis1=1, axis2=2), rtol=1e-11)


def test_the_mismatched_espa_network_grows_its_diagonal():
    evolution = kp.propagate(kp.Transformer(kp.espa(16, 12)), 0.8 * np.eye(16) + 0.2)
    expected = [1, 1.0397012, 1.346811, 1.9261074]
    np.testing.assert_allclose(evolution.diagonal[-1, [0, 1, 7, 15]], expected, rtol=5e-8)
    np.testing.assert_allclose(evolution.kernels[-1][0, 15], 1.2167698420828659, rtol=1e-12)


def test_uniform_attention_collapses_in_one_layer_and_causal_does_not():
    full = kp.propagate(kp.Transformer(kp.uniform(8), depth=3), np.eye(8))
    assert full.rank_residual[1] < 1e-15
    np.testing.assert_allclose(full.mean_correlation[1:], 1, atol=1e-15)
    causal = kp.propagate(kp.Transformer(kp.uniform(8, causal=True), depth=3), np.eye(8))
    assert causal.rank_residual[1] > 0.5
    # Causal means of the identity: Σ_ij = 1/(max(i, j) + 1).
    position = np.arange(8)
    np.testing.assert_allclose(causal.kernels[1], 1 / (np.maximum.outer(position, position) + 1), atol=1e-15)


# Case 42: independent zero-mean values add kernels; identity values add matrices.
def test_skip_and_attention_have_a_cross_term_only_with_identity_values():
    skip = kp.propagate(kp.Transformer(kp.uniform(2), residual=kp.Residual(attention=(1, 1))), np.eye(2))
    np.testing.assert_allclose(skip.kernels[-1], [[1.5, 0.5], [0.5, 1.5]], atol=1e-15)
    identity = kp.propagate(kp.Transformer(kp.mix(kp.uniform(2), 1.0, 1.0)), np.eye(2))
    np.testing.assert_allclose(identity.kernels[-1], [[2.5, 1.5], [1.5, 2.5]], atol=1e-15)


# Cases 40 and 41 (attention branch).
def test_residual_weights():
    half = np.sqrt(0.5)
    model = kp.Transformer(kp.uniform(4), residual=kp.Residual(attention=(half, half)))
    kernel = kp.propagate(model, np.eye(4)).kernels[-1]
    np.testing.assert_allclose(kernel, 0.5 * np.eye(4) + 0.125, atol=1e-15)
    np.testing.assert_allclose(kp.observables.mean_correlation(kernel), 0.2, atol=1e-15)


# Case 57.
def test_collapse_far_below_rounding_keeps_its_digits():
    model = kp.Transformer(kp.mix(kp.uniform(4), 0.9, 0.1), depth=1000)
    evolution = kp.propagate(model, np.eye(4), keep="last")
    lost = evolution.rank_residual**2 * evolution.diagonal.sum(-1)
    expected = 3 * 0.9 ** (2 * np.array([100, 200, 300]))
    np.testing.assert_allclose(lost[[100, 200, 300]], expected, rtol=1e-11)
    np.testing.assert_allclose(expected[:2], [2.1165237325966e-9, 1.493224236881548e-18], rtol=1e-13)
    assert not evolution.below_floor[:300].any()
    # What rounding makes of collapse is flagged, never shown as healthy.
    floor = evolution.rank_residual[evolution.rank_residual < 16 * np.finfo(float).eps]
    assert evolution.below_floor.sum() == len(floor) > 0


# Case 60.
def test_a_correlation_within_rounding_of_one_is_kept():
    kernel = np.array([[1, 0.999999999999], [0.999999999999, 1]])
    kept = kp.propagate(kp.Transformer(kp.identity(2), depth=36), kernel).kernels[-1]
    assert kept.dtype == np.float64
    np.testing.assert_allclose(1 - kept[0, 1], 1e-12, rtol=1e-4)


def test_float64_is_the_default_and_the_flag_is_left_alone():
    before = jax.config.jax_enable_x64
    evolution = kp.propagate(kp.Transformer(kp.espa(8, 3)), np.eye(8, dtype=np.float32))
    assert evolution.kernels.dtype == evolution.mean_correlation.dtype == np.float64
    single = kp.propagate(kp.Transformer(kp.espa(8, 3)), np.eye(8), dtype="float32")
    assert {array.dtype for array in (single.kernels, single.diagonal, single.rank_residual)} == {np.dtype("float32")}
    assert jax.config.jax_enable_x64 is before
    assert isinstance(evolution.kernels, np.ndarray)


@pytest.mark.parametrize("make", [kp.espa, pytest.param(kp.uspa, marks=pytest.mark.slow)])
def test_float32_is_close_to_float64_at_the_default_schedule(make):
    model = kp.Transformer(make(256, 50))
    exact = kp.propagate(model, np.eye(256), keep="last").kernels
    single = kp.propagate(model, np.eye(256), keep="last", dtype="float32").kernels
    np.testing.assert_allclose(single, exact, atol=1e-5)


# Case 61.
@pytest.mark.parametrize("dtype", ["float16", "float128", "longdouble", "bfloat16", "int32", "nonsense"])
def test_other_precisions_are_refused(dtype):
    with pytest.raises(ValueError, match="use float32 or float64"):
        kp.propagate(kp.Transformer(kp.identity(2)), np.eye(2), dtype=dtype)


# Case 62.
def test_depth_is_a_scan_and_a_sweep_compiles_once():
    evolution = kp.propagate(kp.Transformer(kp.espa(64, 1000)), np.eye(64), keep="last")
    np.testing.assert_allclose(evolution.kernels[-1][0, 63], 0.7297888742690568, rtol=1e-11)
    before = infinite._scan._cache_size()
    for gamma in np.linspace(0.004, 0.2, 20):
        kp.propagate(kp.Transformer(kp.espa(64, 1000, gamma=gamma)), np.eye(64), keep="last")
    assert infinite._scan._cache_size() == before


def test_batches_come_first_in_the_result():
    kernels = np.array([[positive(5, seed) for seed in pair] for pair in ((0, 1), (2, 3), (4, 5))])
    model = kp.Transformer(kp.uspa(5, 4))
    together = kp.propagate(model, kernels)
    assert together.kernels.shape == (3, 2, 5, 5, 5)
    assert together.diagonal.shape == (3, 2, 5, 5)
    alone = kp.propagate(model, kernels[2, 1])
    np.testing.assert_allclose(together.kernels[2, 1], alone.kernels, rtol=1e-12)
    np.testing.assert_allclose(together.mean_correlation[2, 1], alone.mean_correlation, rtol=1e-12)


def test_several_sequences_at_once():
    """The diagonal blocks evolve as alone; the blocks between follow A Σ Bᵀ with the same A."""
    kernel = positive(10)
    operator = kp.espa(5, 3, gamma=0.1)
    both = kp.propagate(kp.Transformer(kp.block_diagonal(operator, 2)), kernel).kernels[-1]
    alone = kp.propagate(kp.Transformer(operator), kernel[:5, :5]).kernels[-1]
    np.testing.assert_allclose(both[:5, :5], alone, rtol=1e-12)
    product = np.linalg.multi_dot(list(operator.as_matrix()[::-1]))
    np.testing.assert_allclose(both[:5, 5:], product @ kernel[:5, 5:] @ product.T, rtol=1e-11)


@pytest.mark.parametrize("keep", [[0], [6], [3, 1], [6, 0, 2, 2], 4])
def test_kept_depths_are_those_asked_for(keep):
    model = kp.Transformer(kp.espa(4, 6, gamma=0.1))
    everything = kp.propagate(model, np.eye(4))
    some = kp.propagate(model, np.eye(4), keep=keep)
    assert some.depth.tolist() == sorted({*np.atleast_1d(keep).tolist()})
    np.testing.assert_array_equal(some.kernels, everything.kernels[some.depth])
    np.testing.assert_array_equal(some.mean_correlation, everything.mean_correlation)


def test_spectral_observables_come_on_request():
    model = kp.Transformer(kp.uniform(4, causal=True), depth=2)
    plain = kp.propagate(model, np.eye(4))
    assert plain.eigenvalues is None
    assert plain.attention_entropy is None
    full = kp.propagate(model, np.eye(4), observables="all")
    values = np.linalg.eigvalsh(full.kernels)[:, ::-1]
    np.testing.assert_allclose(full.eigenvalues, values, atol=1e-14)
    np.testing.assert_allclose(full.stable_rank, values.sum(-1) / values[:, 0], rtol=1e-12)
    # Case 56: the entropy of causal means is ln(24)/4 a layer.
    np.testing.assert_allclose(full.attention_entropy, np.log(24) / 4, rtol=1e-12)


def test_a_zero_kernel_is_undefined_and_flagged():
    evolution = kp.propagate(kp.Transformer(kp.identity(3)), np.zeros((3, 3)))
    assert evolution.undefined.all()
    for values in (evolution.mean_correlation, evolution.rank_residual, evolution.participation_ratio):
        assert np.isnan(values).all()


def test_an_overflow_is_flagged():
    evolution = kp.propagate(kp.Transformer(kp.dense(1e80 * np.eye(2)), depth=3), np.eye(2))
    assert evolution.undefined.tolist() == [False, False, True, True]


@pytest.mark.slow  # a compilation an operator
@pytest.mark.parametrize("name", [n for n in OPERATORS if "rising" not in n and "falling" not in n])
def test_positive_semidefinite_through_the_network(name):
    operator = OPERATORS[name]()
    for kernel in kp.propagate(kp.Transformer(operator), positive(operator.length)).kernels:
        assert np.linalg.eigvalsh(kernel)[0] >= -1e-12 * np.trace(kernel)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m: kp.propagate(m, np.eye(3)), "kernel0: 3 positions, but the attention has 4"),
        (lambda m: kp.propagate(m, np.ones((4, 3))), r"kernel0: shape \(4, 3\) is not"),
        (lambda m: kp.propagate(m, np.diag([1, 1, -1, 1.0])), "kernel0: position 2: the diagonal is -1"),
        (lambda m: kp.propagate(m, np.full((4, 4), np.nan)), r"kernel0: entry \(0, 0\) is nan"),
        (lambda m: kp.propagate(m, np.eye(4), keep="most"), "'most' is unknown"),
        (lambda m: kp.propagate(m, np.eye(4), keep=[0, 9]), "depth 9 is outside 0…2"),
        (lambda m: kp.propagate(m, np.eye(4), keep=[]), "no depth is named"),
        (lambda m: kp.propagate(m, np.eye(4), keep=-1), "-1 is too small"),
        (lambda m: kp.propagate(m, np.eye(4), observables="some"), "'some' is unknown"),
        (lambda m: kp.Transformer(kp.espa(4, 3), depth=2), "depth=2 conflicts with the attention's 3 layers"),
        (lambda m: kp.Transformer(kp.uniform(4), depth=0), "0 is too small"),
        (lambda m: kp.Transformer(kp.uniform(4), residual=(1, 1)), r"a kp.Residual is wanted, \(1, 1\)"),
        (
            lambda m: kp.Transformer(kp.espa(4, 3), residual=kp.Residual(attention=([1, 1], 1))),
            "2 values for 3 layers",
        ),
        (lambda m: kp.Residual(attention=(1, np.nan)), "residual: attention: nan"),
        (lambda m: kp.Residual(mlp=1.0), r"mlp is a pair \(alpha, beta\)"),
    ],
)
def test_bad_input_is_refused_in_one_line(call, message):
    with pytest.raises(ValueError, match=message) as error:
        call(kp.Transformer(kp.uniform(4), depth=2))
    assert "\n" not in str(error.value)


def test_what_cannot_fit_in_memory_is_refused_with_the_keep_that_fits(monkeypatch):
    from kernelprop import memory

    monkeypatch.setattr(memory, "available_bytes", lambda: 10 * 64 * 64 * 8)
    model = kp.Transformer(kp.uniform(64), depth=100)
    with pytest.raises(
        ValueError, match=r"101 kernels of 32\.0 KiB need 3\.2 MiB.*keep at most 6 depths, or keep='last'"
    ):
        kp.propagate(model, np.eye(64))
    assert kp.propagate(model, np.eye(64), keep="last").kernels.shape == (1, 64, 64)
