"""The fits of γ_0 and ρ_0 against fine grids, and the mismatch that they are there to reduce."""

import numpy as np
import pytest

import kernelprop as kp
from kernelprop.attention.fit import nearest_gamma, nearest_rho, relative_distance
from kernelprop.examples import minilm
from kernelprop.fitting import SignalFit, fit_espa, fit_uspa, mismatch

DEPTH = 12


def lags(length):
    return np.abs(np.arange(length)[:, None] - np.arange(length))


def exponential(gamma, length):
    with np.errstate(invalid="ignore"):
        return np.where(lags(length) == 0, 1.0, np.exp(-gamma * lags(length)))


def equicorrelated(rho, length):
    return (1 - rho) * np.eye(length) + rho


def repeated_tokens(length=16, words=4, seed=0):
    ids = np.random.default_rng(seed).integers(words, size=length)
    return (ids[:, None] == ids[None, :]).astype(float)


def sentence():
    kernel = minilm().kernels[0]
    return kernel * len(kernel) / np.trace(kernel)


def wave(share, frequency, length=40):
    """A common part and a wave: the distance has two minima in γ."""
    return share + (1 - share) * np.cos(frequency * lags(length))


KERNELS = {
    "sentence": sentence,
    "equicorrelated": lambda: equicorrelated(0.3, 16),
    "exponential": lambda: exponential(0.4, 16),
    "repeated tokens": repeated_tokens,
    "wave, small gamma": lambda: wave(0.33, 1.08),
    "wave, large gamma": lambda: wave(0.31, 1.71),
    "identity": lambda: np.eye(16),
    "negative": lambda: equicorrelated(-0.05, 16),
}


def distances(kernel, prescribed):
    return np.linalg.norm(kernel - prescribed, axis=(-2, -1)) / np.linalg.norm(kernel)


@pytest.mark.parametrize("name", KERNELS)
def test_no_gamma_of_a_fine_grid_is_nearer(name):
    kernel = KERNELS[name]()
    value = nearest_gamma(kernel, 0.005)
    found = relative_distance(kernel, exponential(value, len(kernel)))
    assert value >= 0.005
    nearest = distances(kernel, np.eye(len(kernel)))
    for block in np.array_split(np.geomspace(0.005, 60, 3000), 40):
        decayed = np.exp(-block[:, None, None] * lags(len(kernel)))
        nearest = min(nearest, distances(kernel, decayed).min())
    assert found <= nearest + 1e-14
    assert found == pytest.approx(nearest, abs=2e-3)


@pytest.mark.parametrize("name", KERNELS)
def test_no_rho_of_a_fine_grid_is_nearer(name):
    kernel = KERNELS[name]()
    value = nearest_rho(kernel, 0.8)
    found = relative_distance(kernel, equicorrelated(value, len(kernel)))
    assert 0 <= value <= 0.8
    nearest = min(distances(kernel, equicorrelated(rho, len(kernel))) for rho in np.linspace(0, 0.8, 801))
    assert found <= nearest + 1e-14
    assert found == pytest.approx(nearest, abs=2e-3)


@pytest.mark.parametrize(("share", "frequency", "deeper"), [(0.33, 1.08, 0), (0.31, 1.71, 1)])
def test_of_two_minima_in_gamma_the_deeper_one_is_found(share, frequency, deeper):
    kernel = wave(share, frequency)
    grid = np.geomspace(0.005, 40, 2000)
    curve = distances(kernel, np.exp(-grid[:, None, None] * lags(len(kernel))))
    minima = np.flatnonzero((curve[1:-1] < curve[:-2]) & (curve[1:-1] < curve[2:])) + 1
    assert len(minima) == 2
    assert nearest_gamma(kernel, 0.005) == pytest.approx(grid[minima[deeper]], rel=0.01)


@pytest.mark.parametrize("rho", [0.0, 0.05, 0.2, 0.79])
def test_the_rho_of_an_equicorrelated_kernel_is_recovered_and_the_mismatch_is_gone(rho):
    fit = fit_uspa(3.0 * equicorrelated(rho, 16), DEPTH)
    assert fit.value == pytest.approx(rho, abs=1e-15)
    assert fit.scale == pytest.approx(1 / 3)
    assert fit.after.maximum < 1e-12
    assert fit.distance_after < 1e-14


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("gamma", [0.01, 0.3, 2.0])
def test_the_gamma_of_an_exponential_kernel_is_recovered_and_the_mismatch_is_gone(gamma, causal):
    fit = fit_espa(exponential(gamma, 16), DEPTH, causal=causal)
    assert fit.value == pytest.approx(gamma, rel=1e-12)
    assert fit.after.maximum < 1e-11
    assert fit.before.maximum > 0.05


def test_the_identity_wants_infinite_gamma_and_no_rho():
    assert fit_espa(np.eye(16), DEPTH).value == np.inf
    assert fit_uspa(np.eye(16), DEPTH).value == 0.0


def test_a_kernel_more_correlated_than_the_end_of_the_schedule_stops_there():
    kernel = exponential(0.001, 16)
    fit = fit_espa(kernel, DEPTH)
    assert fit.value == 0.005
    np.testing.assert_allclose(fit.attention.as_matrix(), np.broadcast_to(np.eye(16), (DEPTH, 16, 16)), atol=1e-13)
    assert fit_uspa(kernel, DEPTH).value == 0.8


def test_one_position_has_nothing_to_fit():
    assert nearest_gamma(np.ones((1, 1)), 0.005) in (0.005, np.inf)
    assert nearest_rho(np.ones((1, 1)), 0.8) == 0.0


@pytest.mark.parametrize("name", ["sentence", "repeated tokens"])
def test_fitting_e_spa_reduces_the_blow_up_of_real_inputs(name):
    fit = fit_espa(KERNELS[name](), DEPTH)
    assert fit.after.mean < fit.before.mean
    assert fit.after.maximum < fit.before.maximum
    assert fit.distance_after < fit.distance_before


def test_the_reported_mismatch_is_that_of_the_stacks():
    kernel = repeated_tokens()
    fit = fit_uspa(kernel, DEPTH)
    assert isinstance(fit, SignalFit)
    assert fit.parameter == "rho0"
    for reported, stack in ((fit.before, kp.uspa(16, DEPTH)), (fit.after, fit.attention)):
        excess = np.abs(kp.propagate(kp.Transformer(stack), kernel).kernel(-1).diagonal() - 1)
        assert reported.maximum == pytest.approx(excess.max(), rel=1e-12)
        assert reported.mean == pytest.approx(excess.mean(), rel=1e-12)


def test_the_known_blow_up_of_e_spa():
    """T = 16, L = 12, γ_L = 0.005, true Σ_0 = 0.8 I + 0.2·11ᵀ."""
    kernel = equicorrelated(0.2, 16)
    found = mismatch(kp.espa(16, DEPTH), kernel)
    np.testing.assert_allclose(found.diagonal[[0, 1, 7, 15]], [1, 1.0397012, 1.346811, 1.9261074], rtol=1e-7)
    assert found.maximum == pytest.approx(0.9261074, abs=1e-7)
    last = kp.propagate(kp.Transformer(kp.espa(16, DEPTH)), kernel).kernel(-1)
    assert last[0, 15] == pytest.approx(1.2167698420828659, rel=1e-12)


def test_less_correlated_inputs_shrink_the_diagonal():
    """The other sign of the mismatch: attention made for a correlated input, given the identity."""
    found = mismatch(kp.espa(16, DEPTH, gamma0=0.5), np.eye(16))
    assert found.diagonal.min() < 0.9
    assert found.diagonal.max() <= 1 + 1e-12


def test_the_scale_of_the_input_is_taken_off():
    kernel = equicorrelated(0.2, 16)
    assert mismatch(kp.espa(16, DEPTH), 5 * kernel).maximum == pytest.approx(
        mismatch(kp.espa(16, DEPTH), kernel).maximum
    )


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (np.zeros((3, 3)), "kernel0: the diagonal is zero"),
        ([[1.0, 2.0], [2.0, 1.0]], "kernel0: positions 0 and 1: entry 2 exceeds"),
        ([[1.0, np.nan], [np.nan, 1.0]], "every entry must be finite"),
        (np.ones((2, 3, 3)), "one kernel"),
        (np.eye(3, dtype=np.float16), "float16 is not supported"),
    ],
)
@pytest.mark.parametrize("fit", [fit_espa, fit_uspa])
def test_bad_kernels_are_refused(fit, kernel, message):
    with pytest.raises(ValueError, match=message):
        fit(kernel, DEPTH)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: fit_espa(np.eye(3), 0), "fit_espa: depth: 0 is too small"),
        (lambda: fit_espa(np.eye(3), 2, gamma=-1.0), "gamma"),
        (lambda: fit_uspa(np.eye(3), 2, rho=1.0), "rho"),
        (lambda: mismatch(kp.espa(4, 2), np.eye(3)), "3 positions, but the attention has 4"),
    ],
)
def test_wrong_numbers_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_nearest_rho_is_the_mean_off_the_diagonal():
    kernel = repeated_tokens()
    assert nearest_rho(kernel, 0.9) == pytest.approx(kernel[~np.eye(16, dtype=bool)].mean())
