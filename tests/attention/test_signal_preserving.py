"""Signal-preserving attention: closed forms, schedules, refusals."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kernelprop as kp
from kernelprop.attention.prescribed import symmetric_root


def exponential(length, gamma):
    lag = np.abs(np.subtract.outer(np.arange(length), np.arange(length)))
    return np.where(lag == 0, 1.0, np.exp(-gamma * np.maximum(lag, 1)))


def equicorrelated(length, rho):
    return (1 - rho) * np.eye(length) + rho


def evolve(operator, kernel):
    return kp.propagate(kp.Transformer(operator), kernel).kernels


# Case 01.
def test_espa_divides_rows_by_their_sums():
    operator = kp.espa(3, gammas=[1.0, 0.2])
    expected = [
        [1, 0, 0],
        [0.59157281406567, 0.61747929780737, 0],
        [0.48433885556045, 0.27839135149158, 0.61747929780737],
    ]
    np.testing.assert_allclose(operator.as_matrix()[0], expected, atol=1e-13)
    form = operator.softmax_form()
    np.testing.assert_allclose(form.rescale[0], [1, 1.209052111873, 1.3802095048594], atol=1e-12)
    shares = np.where(form.mask, np.exp(form.bias[0]), 0)
    np.testing.assert_allclose(shares[2], [0.3509169106974, 0.20170224195054, 0.44738084735206], atol=1e-13)
    kernel = evolve(operator, exponential(3, 1.0))[-1]
    np.testing.assert_allclose(kernel[0, 2], 0.67032004603564, atol=1e-13)
    np.testing.assert_allclose(np.diag(kernel), 1, atol=1e-14)


# Case 03.
def test_espa_layers_telescope():
    schedule = kp.espa_schedule(4)
    np.testing.assert_allclose(schedule[1:], [0.18977666139696, 0.052541677064727, 0.01600572729897, 0.005], rtol=1e-12)
    kernels = evolve(kp.espa(4, 4), np.eye(4))
    np.testing.assert_allclose(kernels[1][0, 1], 0.827143846467061, rtol=1e-12)
    np.testing.assert_allclose(kernels[4][0, 3], 0.9851119396030627, rtol=1e-12)
    np.testing.assert_allclose(kernels[:, range(4), range(4)], 1, atol=1e-14)


# Case 04.
def test_the_bias_is_in_the_logits():
    form = kp.espa(4, 4).softmax_form()
    np.testing.assert_allclose(form.rescale[0], [1, 1.3891341108415, 1.7110039960745, 1.977236691008], rtol=1e-12)
    shares = np.exp(form.bias[0]) * form.mask
    expected = [0.28620977914483, 0.19446086691592, 0.23509921248464, 0.28423014145461]
    np.testing.assert_allclose(shares[3], expected, rtol=1e-12)
    kernel = evolve(kp.espa(4, 4), np.eye(4))[1]
    np.testing.assert_allclose([kernel[0, 3], kernel[3, 3]], [0.56590447665, 1], rtol=1e-10)


# Case 06.
def test_an_infinite_decay_rate_is_the_identity():
    np.testing.assert_array_equal(kp.espa(3, gammas=[np.inf, np.inf]).as_matrix()[0], np.eye(3))
    matrix = kp.espa(3, 1, gamma=0.2).as_matrix()[0]
    np.testing.assert_allclose(matrix[1, :2], [0.81873075307798, 0.57417763276216], atol=1e-13)
    np.testing.assert_allclose(matrix[2], [0.67032004603564, 0.4700968856719, 0.57417763276216], atol=1e-13)


# Cases 11 and 13.
def test_the_factor_is_lower_with_nothing_above_the_diagonal():
    first = np.array([[1, 0.5, 0.25], [0.5, 1, 0.5], [0.25, 0.5, 1]])
    half = np.sqrt(3) / 2
    expected = [[1, 0, 0], [0.5, half, 0], [0.25, half / 2, half]]
    matrix = kp.signal_preserving([np.eye(3), first]).as_matrix()[0]
    np.testing.assert_allclose(matrix, expected, atol=1e-15)
    other = kp.signal_preserving([np.eye(2), [[4, 2], [2, 3]]]).as_matrix()[0]
    np.testing.assert_allclose(other, [[2, 0], [1, np.sqrt(2)]], atol=1e-15)
    assert other[0, 1] == matrix[0, 1] == matrix[0, 2] == 0


# Case 16.
def test_uspa_closed_form_and_the_singular_correlation():
    matrix = kp.uspa(3, rhos=[0.2, 0.6]).as_matrix()[0]
    expected = [
        [1, 0, 0],
        [0.43670068381445, 0.81649658092773, 0],
        [0.41082117750063, 0.17824463891811, 0.76764947357874],
    ]
    np.testing.assert_allclose(matrix, expected, atol=1e-13)
    np.testing.assert_allclose(matrix.sum(1), [1, 1.25319726474218, 1.35671528999748], atol=1e-13)
    with pytest.raises(ValueError, match=r"rho is -0\.333333; it must lie in \[0, 1\)"):
        kp.uspa(4, 1, rho=-1 / 3)
    with pytest.raises(ValueError, match="depth 1: the kernel is singular"):
        kp.signal_preserving([np.eye(4), equicorrelated(4, -1 / 3)], require_nonnegative=False)


# Case 17.
def test_tiny_decay_rates_keep_their_digits():
    matrix = kp.espa(3, gammas=[2e-9, 1e-9]).as_matrix()[0]
    expected = [0.7071067815401009, 0.2928932188741126, 0.2928932185812194, 7.071067804794407e-10]
    np.testing.assert_allclose([matrix[1, 1], matrix[1, 0], matrix[2, 0], matrix[2, 1]], expected, rtol=1e-12)


# Case 19.
def test_a_rising_decay_rate_is_refused_and_nothing_is_clamped():
    with pytest.raises(ValueError, match=r"layer 1: gamma rises from 0\.2 to 1, .*\(1, 0\) would be -0\.958044773592"):
        kp.espa(3, gammas=[0.2, 1.0])
    plain = kp.espa(3, gammas=[0.2, 1.0], require_nonnegative=False)
    matrix = plain.as_matrix()[0]
    np.testing.assert_allclose(matrix[1, :2], [-0.95804477359211, 1.6194874930236], atol=1e-13)
    np.testing.assert_allclose(matrix[2], [-0.35244497592628, -0.7301480608459, 1.6194874930236], atol=1e-13)
    with pytest.raises(ValueError, match=r"layer 1: softmax form: entry \(1, 0\) is -0\.958"):
        plain.softmax_form()


def test_a_falling_correlation_is_refused():
    with pytest.raises(
        ValueError, match=r"uspa: layer 2: rho falls from 0\.6 to 0\.2, .*entry \(1, 0\) would be -0\.5"
    ):
        kp.uspa(3, rhos=[0.1, 0.6, 0.2])
    assert kp.uspa(3, rhos=[0.6, 0.2], require_nonnegative=False).as_matrix().min() < 0


# Case 20.
def test_symmetric_roots():
    np.testing.assert_allclose(symmetric_root(np.ones((3, 3))), 0.5773502691896258, atol=1e-14)
    with pytest.raises(ValueError, match=r"depth 0: the kernel is singular .* its symmetric root has no inverse"):
        kp.signal_preserving([np.ones((3, 3)), np.eye(3)], causal=False)
    operator = kp.espa(3, gammas=[1.0, 0.2], causal=False)
    expected = [
        [0.82212506866639, 0.23820232543261, 0.20464577085902],
        [0.2755907236981, 0.72924938212947, 0.2755907236981],
        [0.20464577085902, 0.23820232543261, 0.82212506866639],
    ]
    np.testing.assert_allclose(operator.as_matrix()[0], expected, atol=1e-13)
    np.testing.assert_allclose(
        operator.softmax_form().rescale[0], [1.264973164958, 1.2804308295257, 1.264973164958], atol=1e-12
    )


@pytest.mark.slow
@pytest.mark.parametrize("depth", [1000])
def test_prescribed_kernels_are_hit_at_every_depth(depth):
    length = 24
    for operator, prescribed in (
        (kp.espa(length, depth), [exponential(length, g) for g in kp.espa_schedule(depth)]),
        (kp.uspa(length, depth), [equicorrelated(length, r) for r in kp.uspa_schedule(depth)]),
        (kp.uspa(length, depth, causal=False), [equicorrelated(length, r) for r in kp.uspa_schedule(depth)]),
    ):
        np.testing.assert_allclose(evolve(operator, np.eye(length)), prescribed, atol=1e-10)


def test_the_espa_schedule_makes_one_diagonal():
    """All diagonal entries but A_00 are (a(γ_L)/a(γ_0))^{1/L}."""
    depth, gamma, gamma0 = 7, 0.02, 0.9
    diagonals = np.diagonal(kp.espa(6, depth, gamma, gamma0).as_matrix(), axis1=1, axis2=2)
    expected = (np.expm1(-2 * gamma) / np.expm1(-2 * gamma0)) ** (0.5 / depth)
    np.testing.assert_allclose(diagonals[:, 1:], expected, rtol=1e-12)
    np.testing.assert_array_equal(diagonals[:, 0], 1)


@given(end=st.floats(1e-4, 3.0), depth=st.integers(1, 40), gap=st.sampled_from([0.0, 1e-15, 1e-12]))
def test_schedules_between_equal_ends_do_not_turn_back(end, depth, gap):
    assert (np.diff(kp.espa_schedule(depth, end, end * (1 + gap))) <= 0).all()
    rho = end / 4
    assert (np.diff(kp.uspa_schedule(depth, rho * (1 + gap), rho)) >= 0).all()
    np.testing.assert_array_equal(kp.espa(3, depth, end, end).as_matrix(), np.broadcast_to(np.eye(3), (depth, 3, 3)))


def test_schedules_end_exactly_where_they_should():
    assert kp.espa_schedule(9, 0.005)[[0, -1]].tolist() == [np.inf, 0.005]
    assert kp.uspa_schedule(9, 0.8, 0.1)[[0, -1]].tolist() == [0.1, 0.8]
    ratios = np.diff(np.log1p(-kp.uspa_schedule(9, 0.8, 0.1)))
    np.testing.assert_allclose(ratios, ratios[0], rtol=1e-12)


@given(
    length=st.integers(2, 12),
    gammas=st.lists(st.floats(1e-3, 5.0), min_size=2, max_size=5),
    rhos=st.lists(st.floats(0.0, 0.99), min_size=2, max_size=5),
)
def test_closed_forms_equal_cholesky_and_are_nonnegative(length, gammas, rhos):
    gammas, rhos = sorted(gammas, reverse=True), sorted(rhos)
    for operator, path in (
        (kp.espa(length, gammas=gammas), [exponential(length, g) for g in gammas]),
        (kp.uspa(length, rhos=rhos), [equicorrelated(length, r) for r in rhos]),
    ):
        matrices = operator.as_matrix()
        assert matrices.min() >= 0
        # Cholesky's own error grows with the kernel's condition, at most about length / (1e-3 gap).
        general = kp.signal_preserving(path, require_nonnegative=False).as_matrix()
        np.testing.assert_allclose(matrices, general, atol=1e-10)


@given(length=st.integers(2, 30), depth=st.integers(1, 30), gamma=st.floats(1e-4, 2.0))
def test_softmax_form_gives_the_attention_back(length, depth, gamma):
    operator = kp.espa(length, depth, gamma)
    form = operator.softmax_form()
    assert form.rescale.shape == (depth, length)
    assert form.bias.shape == (depth, length, length)
    assert form.mask.shape == (length, length)
    assert form.mask.dtype == bool
    assert (form.bias[:, ~form.mask] == 0).all()
    logits = np.where(form.mask, form.bias, -np.inf)
    shares = np.exp(logits - logits.max(-1, keepdims=True))
    shares /= shares.sum(-1, keepdims=True)
    np.testing.assert_allclose(form.rescale[..., None] * shares, operator.as_matrix(), rtol=1e-12, atol=1e-15)


def test_softmax_form_with_heads_and_layers_that_differ():
    heads = kp.dense(np.array([[[[0.5, 0.5], [0.2, 0.8]], [[1, 1], [3, 1]]]]))
    form = heads.softmax_form()
    assert (form.rescale.shape, form.bias.shape, form.mask.shape) == ((1, 2, 2), (1, 2, 2, 2), (2, 2))
    np.testing.assert_allclose(form.rescale[0, 1], [2, 4])
    assert kp.espa(3, gammas=[1.0, 1.0, 0.2]).softmax_form().mask.shape == (2, 3, 3)


def test_underflow_loses_no_bias():
    form = kp.espa(400, gammas=[np.inf, *kp.espa_schedule(1000)[1:4]]).softmax_form()
    assert form.mask.shape == (400, 400)
    assert np.isfinite(form.bias).all()
    assert form.bias[0][399, 0] < -745


# Case 09: a row that attends to nothing is a zero row of a linear operator, and has no softmax form.
def test_a_row_that_attends_to_nothing():
    operator = kp.dense([[0.5, 0.5, 0], [0.5, 0.5, 0], [0, 0, 0]])
    evolution = kp.propagate(kp.Transformer(operator), np.eye(3))
    expected = np.array([[0.5, 0.5, 0], [0.5, 0.5, 0], [0, 0, 0]])
    np.testing.assert_allclose(evolution.kernels[-1], expected, atol=1e-15)
    assert evolution.undefined.tolist() == [False, True]
    assert np.isnan(evolution.mean_correlation[1])
    correlation = kp.observables.correlation(expected)
    assert np.isnan(correlation[2]).all()
    assert (correlation[:2, :2] == 1).all()
    with pytest.raises(ValueError, match="position 2 attends to nothing"):
        operator.softmax_form()


# Case 07.
def test_the_softmax_of_a_structural_zero_has_clean_gradients():
    import jax
    import jax.numpy as jnp

    form = kp.espa(3, gammas=[1.0, 0.2]).softmax_form()
    with jax.enable_x64(True):
        weights = jnp.arange(1.0, 4.0)
        bias, mask = jnp.asarray(form.bias[0]), jnp.asarray(form.mask)

        def means(logits):
            return jax.nn.softmax(jnp.where(mask, logits + bias, -jnp.inf), axis=-1) @ weights

        value, gradient = np.asarray(means(jnp.zeros((3, 3)))), np.asarray(jax.jacobian(means)(jnp.zeros((3, 3))))
    np.testing.assert_allclose(value[1:], [1.51071355133798, 2.09646393665466], rtol=1e-13)
    np.testing.assert_allclose(gradient[1, 1], [-0.249885219817728, 0.249885219817728, 0], atol=1e-13)
    np.testing.assert_allclose(gradient[2, 2], [-0.384767737341964, -0.0194569922906199, 0.404224729632584], atol=1e-13)
    assert gradient[1, 1, 2] == 0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: kp.espa(4, 3, gamma=-1.0), "depth 1: gamma is -1; it must be positive"),
        (lambda: kp.espa(4, 3, gamma=0.0), "gamma is 0; it must be positive"),
        (lambda: kp.espa(4, 3, gamma=np.nan), "nan"),
        (lambda: kp.espa(4, 3, gamma=0.5, gamma0=0.1), "layer 1: gamma rises from 0.1 to 0.5"),
        (lambda: kp.espa(4, 3, gammas=[2.0, 1.0]), "depth=3 conflicts with the 1 layers of gammas"),
        (lambda: kp.espa(4, gammas=[1.0]), "a schedule has L"),
        (lambda: kp.uspa(4, 3, rho=1.0), r"rho is 1; it must lie in \[0, 1\)"),
        (lambda: kp.uspa(4, 2, rho=0.2, rho0=0.5), "rho falls from 0.5 to 0.2"),
        (lambda: kp.signal_preserving(np.eye(3)), r"not \(L \+ 1, T, T\)"),
        (lambda: kp.signal_preserving([np.eye(2), [[1, 0.5], [0.4, 1]]]), "depth 1: not symmetric"),
        (
            lambda: kp.signal_preserving([exponential(3, 1.0), exponential(3, 0.2), exponential(3, 1.0)]),
            r"layer 2: attention entry \(1, 0\) is -0\.958",
        ),
    ],
)
def test_bad_schedules_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
