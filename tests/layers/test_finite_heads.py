"""Finitely many heads are a random kernel, whose nonlinear observables are not those of its mean.

Two tokens of correlation 1/2 under random softmax. The two logits of a row differ by a standard Gaussian, ``x`` for one
row and ``y`` for the other, of correlation 1/2; everything follows by quadrature. Statistical checks hold within 4
standard errors at fixed seeds; each rejects a prediction that is a little wrong.
"""

import numpy as np
import pytest

import kernelprop as kp
from kernelprop.attention.random_softmax import random_softmax

LIMIT = 4.0  # standard errors


def heads_by_quadrature():
    """Weights, and ``Σ'_00 + Σ'_11`` and ``Σ'_00 + Σ'_11 − 2Σ'_01`` of one head at the nodes.

    In ``x − y`` on its half line, where the rank residual, ``∝ |p − q|``, is smooth; the other half is its mirror.
    """
    nodes, weights = np.polynomial.legendre.leggauss(200)
    difference, weight = 6 * (nodes + 1), 12 * weights * np.exp(-((6 * (nodes + 1)) ** 2) / 2) / np.sqrt(2 * np.pi)
    other, other_weight = np.polynomial.hermite_e.hermegauss(60)
    # Var(x − y) = 1, Var(x + y) = 3, and the two are independent.
    x, y = (np.sqrt(3) * other[None, :] + sign * difference[:, None] for sign in (1, -1))
    p, q = (1 / (1 + np.exp(-z / 2)) for z in (x, y))
    weights = weight[:, None] * other_weight / np.sqrt(2 * np.pi)
    trace = sum(r**2 + (1 - r) ** 2 + r * (1 - r) for r in (p, q))
    return weights, trace, (p - q) ** 2


def residual(trace, apart):
    """``sqrt(tr(CΣC)/tr Σ)``."""
    return np.sqrt(apart / 2 / trace)


def expected_residuals():
    """Of the mean kernel; its mean over kernels of one head, less that; and the coefficient of ``1/H``."""
    weights, trace, apart = heads_by_quadrature()
    np.testing.assert_allclose(weights.sum(), 1, rtol=1e-12)
    mean_trace, mean_apart = (weights * trace).sum(), (weights * apart).sum()
    limit = residual(mean_trace, mean_apart)
    # r = sqrt(a/2t): the second-order terms of a mean over H independent heads.
    t, a = trace / mean_trace - 1, apart / mean_apart - 1
    second = limit * (-(a**2) / 8 - a * t / 4 + 3 * t**2 / 8)
    return limit, (weights * residual(trace, apart)).sum() - limit, (weights * second).sum()


def test_the_quadrature_knows_the_exact_mean():
    weights, trace, apart = heads_by_quadrature()
    diagonal = (weights * trace).sum() / 2
    assert diagonal == pytest.approx(0.793379, abs=1e-6)
    assert diagonal - (weights * apart).sum() / 2 == pytest.approx(0.771428, abs=1e-6)


@pytest.mark.slow
def test_the_rank_residual_of_few_heads_lies_below_that_of_their_mean_kernel():
    limit, one, coefficient = expected_residuals()
    kernel = kp.kernels.equicorrelated(2, 0.5)
    found = {}
    for heads, networks in ((1, 40_000), (4, 20_000), (16, 20_000), (64, 20_000)):
        model = kp.Transformer(random_softmax(2, heads=heads, chains=networks, seed=3))
        evolution = kp.propagate(model, kernel, keep="last")
        assert evolution.rank_residual_stderr is not None
        found[heads] = (evolution.rank_residual[-1] - limit, evolution.rank_residual_stderr[-1])
    bias, error = found[1]
    assert abs(bias - one) < LIMIT * error
    assert abs(bias - 1.1 * one) > LIMIT * error
    assert abs(bias) > LIMIT * error
    for heads, (bias, error) in found.items():
        # What is left of the next order: 15 % at one head, a quarter of that at four.
        assert abs(bias - coefficient / heads) < LIMIT * error + 0.2 * abs(coefficient) / heads**2, heads
        if heads < 64:
            # Neither without bias, nor with one that falls as the spread does.
            assert abs(bias) > LIMIT * error, heads
    for heads in (4, 16):
        bias, error = found[heads]
        assert abs(bias - one / np.sqrt(heads)) > LIMIT * error, heads
