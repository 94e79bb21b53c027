"""Means over chains of numbers that some chains have infinite, such as the eigenvalue gap of a collapsed kernel."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import kernelprop as kp
from kernelprop.attention.random_softmax import random_softmax
from kernelprop.chains import mean_over_chains

INF, NAN = np.inf, np.nan
RUNS = np.array(
    [
        [1.0, INF, INF, 1.0, -INF, INF, INF, 1.0, NAN],
        [2.0, INF, 2.0, INF, -INF, -INF, NAN, NAN, INF],
        [4.0, INF, 4.0, 4.0, -INF, 4.0, 4.0, 4.0, 4.0],
        [7.0, INF, 7.0, INF, -INF, 7.0, 7.0, 7.0, 7.0],
    ]
)
MEANS = [3.5, INF, INF, INF, -INF, NAN, NAN, NAN, NAN]
# Of 1, 2, 4, 7: 21/3/4. Runs that all are infinite agree; finite ones beside infinite ones tell no error.
ERRORS = [np.sqrt(21 / 12), 0, INF, INF, 0, NAN, NAN, NAN, NAN]


@pytest.mark.parametrize("order", [[0, 1, 2, 3], [3, 1, 0, 2]])
def test_infinite_runs_have_an_infinite_mean_and_no_finite_error(order):
    key = jax.random.key(0)
    marks = np.array([jax.random.bits(jax.random.fold_in(key, n)) for n in range(4)])

    def run(own):
        return jnp.asarray(RUNS[order], jnp.float32)[jnp.argmax(jnp.asarray(marks) == jax.random.bits(own))]

    mean, stderr = jax.jit(lambda k: mean_over_chains(run, k, 4))(key)
    np.testing.assert_allclose(mean, MEANS, rtol=1e-6)
    np.testing.assert_allclose(stderr, ERRORS, rtol=1e-6)


# Case 64: a gap whose second eigenvalue vanishes is infinite, not undefined, and a strict parser takes the file.
@pytest.mark.slow  # compiles eigenvalues
def test_the_gap_of_collapsed_chains_is_infinite(tmp_path):
    model = kp.Transformer(random_softmax(16), depth=4)
    evolution = kp.propagate(model, kp.kernels.equicorrelated(16, 0.5), observables="all")
    gap, error, rank = evolution.eigenvalue_gap, evolution.eigenvalue_gap_stderr, evolution.effective_rank
    assert gap is not None
    assert error is not None
    assert rank is not None
    assert gap[0] == pytest.approx((1 + 15 * 0.5) / 0.5, rel=1e-12)
    assert np.isfinite(gap[:3]).all()
    assert (error[1:3] > 0).all()
    # The largest is the whole trace by then, and the second is below 10 T eps of it.
    assert (evolution.rank_residual[3:] ** 2 < 160 * np.finfo(float).eps).all()
    np.testing.assert_array_equal(gap[3:], INF)
    np.testing.assert_array_equal(error[3:], 0)
    assert not np.isnan(rank).any()
    evolution.to_json(tmp_path / "run.json")
    written = json.loads((tmp_path / "run.json").read_text(), parse_constant=pytest.fail)["observables"]
    assert written["eigenvalue_gap"][3:] == ["inf", "inf"]
    assert written["eigenvalue_ratio"][3:] == [0, 0]
