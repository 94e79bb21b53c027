"""Random queries and keys backward: the value's and the score's path."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import kernelprop as kp
from kernelprop.attention.random_softmax import random_softmax
from kernelprop.gradients import gradient_norms
from kernelprop.layers import attention, random_logits
from kernelprop.split_kernel import split
from tests.gradient_cases import COTANGENT, KERNEL, LOSS, T
from tests.sampled_gradients import measured

RESIDUAL = kp.Residual(attention=(0.6, 0.8))


def test_the_score_s_way_back_is_that_of_plain_sums():
    """One drawn matrix: what comes back beside the values' ``AᵀGA``, from the definition of the two paths."""
    layer = random_softmax(T, tau=0.9, query_gain=1.3, key_gain=0.7, heads=1, rescale=[0.7, 1.0, 1.3, 1.1])
    with jax.enable_x64(True):
        key, kernel = jax.random.key(5), split(jnp.asarray(KERNEL))
        layer = jax.tree.map(jnp.asarray, layer)
        below, rows = jax.jit(attention.backward)(layer, None, kernel, jnp.asarray(COTANGENT), key)
        p = np.asarray(random_logits.sample_attention(layer, kernel, jax.random.fold_in(key, 0)))
    d = np.array([0.7, 1.0, 1.3, 1.1])
    a, weighed = d[:, None] * p, COTANGENT * np.outer(d, d)
    queries, keys, query = np.zeros((T, T)), np.zeros((T, T)), 0.0
    for i, k, j, m in np.ndindex(T, T, T, T):
        centred = KERNEL[j, m] - p[i] @ KERNEL[:, m] - KERNEL[j] @ p[k] + p[i] @ KERNEL @ p[k]
        both = p[i, j] * p[k, m] * centred * weighed[i, k]
        queries[i, k] += both * KERNEL[j, m]
        keys[j, m] += both * KERNEL[i, k]
        query += both * KERNEL[j, m] * KERNEL[i, k]
    strength = (0.9 * 1.3 * 0.7) ** 2
    np.testing.assert_allclose(below, a.T @ COTANGENT @ a + strength * (queries + keys), rtol=1e-10)
    np.testing.assert_allclose(rows["query"], (0.9 * 0.7) ** 2 * query, rtol=1e-10)
    np.testing.assert_allclose(rows["key"], (0.9 * 1.3) ** 2 * query, rtol=1e-10)
    np.testing.assert_allclose(rows["value"], np.sum(a.T @ COTANGENT @ a * KERNEL), rtol=1e-12)


def test_drawn_networks_with_random_logits():
    """Causal, rescaled, with gains, logits of standard deviation about 1.3: networks of eight heads."""
    gains = kp.Gains(query=1.1, key=0.8, value=1.2, output=0.9, temperature=1.3)
    attention = random_softmax(T, tau=1.2, causal=True, rescale=[0.7, 1.0, 1.3, 1.1], draws=128, chains=4)
    model = kp.Transformer(attention, depth=2, residual=RESIDUAL, gains=gains)
    norms = gradient_norms(model, KERNEL, COTANGENT, width=128, keep_cotangents=True)
    found = measured(model, KERNEL, 128, 600, factor=LOSS, heads=8, batch=100)
    for name in ("value", "output", "query", "key", "input"):
        mean, error = found[name]
        predicted, own = getattr(norms, name), norms.stderr[name]
        # A finite width and head width leave a few per cent.
        assert np.all(np.abs(mean - predicted) < 4 * np.hypot(error, own) + 0.05 * predicted), name
    assert norms.cotangents.shape == norms.stderr["cotangents"].shape == (3, T, T)
    assert norms.query_exact.tolist() == [False, True]
    assert "chains" in norms.notes[-1]
    silent = kp.Transformer(attention.scaled_logits(0.0), depth=2, residual=RESIDUAL, gains=gains)
    norms = gradient_norms(silent, KERNEL, COTANGENT, width=128, keep_cotangents=True)
    assert norms.query.tolist() == norms.key.tolist() == [0.0, 0.0]


def test_logits_that_vanish_are_uniform_attention():
    random = gradient_norms(kp.Transformer(random_softmax(T, logit_scale="linear"), depth=2), KERNEL)
    given = gradient_norms(kp.Transformer(kp.uniform(T), depth=2), KERNEL)
    for name in ("value", "bias", "rescale", "input"):
        np.testing.assert_allclose(getattr(random, name), getattr(given, name), rtol=1e-12)
    assert random.query.tolist() == random.key.tolist() == [0.0, 0.0]
    assert random.stderr is None


def test_checkpointing_draws_the_same_matrices():
    model = kp.Transformer(random_softmax(T, draws=8, chains=2), depth=3, residual=RESIDUAL)
    one, other = (gradient_norms(model, KERNEL, checkpoint=c) for c in (False, True))
    np.testing.assert_allclose(one.query, other.query, rtol=1e-12)
    np.testing.assert_allclose(one.value, other.value, rtol=1e-12)


def test_what_is_not_known_is_refused_by_name():
    rotary = kp.Transformer(random_softmax(T, rotary=[1.0, 0.1]))
    with pytest.raises(ValueError, match="rotary positions: the scores' way back isn't known"):
        gradient_norms(rotary, KERNEL)
    with pytest.raises(ValueError, match="query_method: 'exact' isn't known for the random attention of layer 1"):
        gradient_norms(kp.Transformer(random_softmax(T)), KERNEL, query_method="exact")
