"""The change of a softmax against mpmath, for small moves and large ones."""

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest

from kernelprop.attention.softmax_change import softmax_change


def exact(logits, move):
    with mpmath.workdps(260):
        before = [mpmath.exp(mpmath.mpf(float(x))) if np.isfinite(x) else mpmath.mpf(0) for x in logits]
        after = [b * mpmath.exp(mpmath.mpf(float(m))) for b, m in zip(before, move, strict=True)]
        sums = sum(before), sum(after)
        return np.array([float(a / sums[1] - b / sums[0]) for a, b in zip(after, before, strict=True)])


@pytest.mark.parametrize("size", [1e-200, 1e-30, 1e-9, 1e-3, 0.3, 0.9, 1.1, 5.0, 60.0])
def test_every_move_has_the_relative_precision_of_rounding(size):
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(4, 7))
    logits[1, 3] = logits[2, 0] = -np.inf
    move = size * rng.normal(size=(4, 7))
    with jax.enable_x64(True):
        before, change = (np.asarray(x) for x in softmax_change(jnp.asarray(logits), jnp.asarray(move)))
    expected = np.array([exact(*rows) for rows in zip(logits, move, strict=True)])
    scale = np.abs(expected).max(-1, keepdims=True)
    assert (np.abs(change - expected) <= 64 * np.finfo(float).eps * scale).all()
    assert (change[~np.isfinite(logits)] == 0).all()
    np.testing.assert_allclose(before.sum(-1), 1, rtol=1e-14)


def test_a_constant_move_changes_nothing_and_a_plain_difference_would_not_do():
    with jax.enable_x64(True):
        logits = jnp.array([[0.3, -1.0, 2.0]])
        _, change = softmax_change(logits, jnp.full((1, 3), 7.0))
        np.testing.assert_allclose(change, 0, atol=1e-15)
        move = jnp.array([[1e-12, 0.0, 0.0]])
        plain = jax.nn.softmax(logits + move) - jax.nn.softmax(logits)
        good = exact(np.asarray(logits)[0], np.asarray(move)[0])
        assert np.abs(np.asarray(plain)[0] / good - 1).max() > 1e-6


def test_gradients_are_finite_on_both_sides():
    def loss(move):
        return jnp.sum(softmax_change(jnp.zeros((2, 3)), move)[1] ** 2)

    move = jnp.array([[1e-6, 0.0, -1e-6], [200.0, 0.0, -200.0]])
    assert np.isfinite(jax.grad(loss)(move)).all()
