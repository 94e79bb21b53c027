"""Random queries and keys backward: the value's and the score's path."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import kernelprop as kp
from kernelprop.attention.random_softmax import random_softmax, shaped_attention
from kernelprop.gradients import gradient_norms
from kernelprop.layers import attention, random_logits
from kernelprop.split_kernel import split
from tests.gradient_cases import COTANGENT, KERNEL, LOSS, T
from tests.sampled_gradients import measured

RESIDUAL = kp.Residual(attention=(0.6, 0.8))


RESCALE = [0.7, 1.0, 1.3, 1.1]
GAINS = {"tau": 0.9, "query_gain": 1.3, "key_gain": 0.7, "heads": 1, "rescale": RESCALE}
BIAS = np.random.default_rng(3).normal(size=(T, T))
LAYERS = {
    "plain": random_softmax(T, **GAINS),
    "rotary": random_softmax(T, rotary=[1.3, 0.4], **GAINS),
    "shaped": shaped_attention(T, 0.8, 0.6, 0.5, bias=BIAS, **GAINS),
}


def of_one_draw(layer):
    """What comes back through one drawn matrix ``P``, and ``P`` and ``P_0``."""
    with jax.enable_x64(True):
        key, kernel = jax.random.key(5), split(jnp.asarray(KERNEL))
        layer = jax.tree.map(jnp.asarray, layer)
        found = jax.jit(attention.backward)(layer, None, kernel, jnp.asarray(COTANGENT), key)
        p = random_logits.sample_attention(layer, kernel, jax.random.fold_in(key, 0))
        below, rows = jax.tree.map(np.asarray, found)
    rest = np.exp(np.broadcast_to(layer.bias, (T, T)))
    return below, rows, np.asarray(p), rest / rest.sum(1, keepdims=True)


@pytest.mark.parametrize("name", LAYERS)
def test_one_draw_s_way_back_is_that_of_plain_sums(name):
    """Values and scores, queries, keys, biases and the weights of the parts, from their definitions."""
    layer = LAYERS[name]
    below, rows, p, p0 = of_one_draw(layer)
    alpha, beta, gamma = (float(w) for w in (layer.identity_weight, layer.softmax_weight, layer.centre_weight))
    frequencies = np.zeros(1) if layer.frequencies is None else layer.frequencies
    d = np.array(RESCALE)
    a, weighed = alpha * np.eye(T) + d[:, None] * (beta * p - gamma * p0), COTANGENT * np.outer(d, d)
    queries, keys, query = np.zeros((T, T)), np.zeros((T, T)), 0.0
    for i, k, j, m in np.ndindex(T, T, T, T):
        centred = KERNEL[j, m] - p[i] @ KERNEL[:, m] - KERNEL[j] @ p[k] + p[i] @ KERNEL @ p[k]
        both = beta**2 * p[i, j] * p[k, m] * centred * weighed[i, k]
        both *= np.mean(np.cos(frequencies * ((i - k) - (j - m))))
        queries[i, k] += both * KERNEL[j, m]
        keys[j, m] += both * KERNEL[i, k]
        query += both * KERNEL[j, m] * KERNEL[i, k]
    strength = (0.9 * 1.3 * 0.7) ** 2
    np.testing.assert_allclose(below, a.T @ COTANGENT @ a + strength * (queries + keys), rtol=1e-10)
    np.testing.assert_allclose(rows["query"], (0.9 * 0.7) ** 2 * query, rtol=1e-10)
    np.testing.assert_allclose(rows["key"], (0.9 * 1.3) ** 2 * query, rtol=1e-10)
    np.testing.assert_allclose(rows["value"], np.sum(a.T @ COTANGENT @ a * KERNEL), rtol=1e-12)
    moves = np.einsum("ij,jk->ijk", beta * p - gamma * p0, np.eye(T))
    moves -= beta * np.einsum("ij,ik->ijk", p, p) - gamma * np.einsum("ij,ik->ijk", p0, p0)
    np.testing.assert_allclose(rows["bias"], np.einsum("ijk,kl,ijl,ii->", moves, KERNEL, moves, weighed), rtol=1e-11)
    inside = beta * p - gamma * p0
    np.testing.assert_allclose(rows["rescale"], np.trace(COTANGENT * (inside @ KERNEL @ inside.T)), rtol=1e-11)
    for part, matrix in (("alpha", np.eye(T)), ("beta", d[:, None] * p), ("gamma", d[:, None] * p0)):
        np.testing.assert_allclose(rows[f"mix_{part}"], np.sum(COTANGENT * (matrix @ KERNEL @ matrix.T)), rtol=1e-11)


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
    assert norms.query_exact.all()
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


@pytest.mark.slow
def test_drawn_networks_of_shaped_attention():
    """With the weights of its parts; a finite width and head width leave a few per cent."""
    attention = shaped_attention(T, 0.8, 0.6, 0.5, bias=BIAS, tau=1.2, rescale=RESCALE, draws=512)
    model = kp.Transformer(attention, depth=2)
    norms = gradient_norms(model, KERNEL, COTANGENT, width=128)
    found = measured(model, KERNEL, 128, 3600, factor=LOSS, heads=8, batch=100)
    for name in ("value", "query", "bias", "rescale", "mix_alpha", "mix_beta", "mix_gamma"):
        # The weights of the parts move all heads at once: exact in the last layer, under no random attention.
        layers = slice(1, 2) if name.startswith("mix_") else slice(0, 2)
        mean, error = (part[layers] for part in found[name])
        predicted, own = getattr(norms, name)[layers], norms.stderr[name][layers]
        allowed = 4 * np.hypot(error, own) + 0.05 * predicted
        assert np.all(np.abs(mean - predicted) < allowed), name
        assert np.any(np.abs(mean - predicted * 1.25) > allowed), name
    assert "mix_… and residual weights" in norms.notes[0]
    plain = gradient_norms(kp.Transformer(random_softmax(T)), KERNEL)
    assert plain.mix_alpha is plain.mix_beta is plain.mix_gamma is None


@pytest.mark.slow
def test_drawn_networks_of_rotary_attention():
    """The finite network turns its queries and keys; the score's path is a quarter of what the values receive."""
    settings = {"tau": 1.5, "causal": True, "draws": 128, "chains": 4}
    model = kp.Transformer(random_softmax(T, rotary=[1.3, 0.4], **settings), depth=2, residual=RESIDUAL)
    norms = gradient_norms(model, KERNEL, COTANGENT, width=128)
    found = kp.simulate(model, KERNEL, width=128, draws=1500, key=0, heads=8, gradients=True, cotangent=COTANGENT)
    for name in ("value", "output", "query", "key"):
        measured_norms, predicted = getattr(found, name), getattr(norms, name)
        allowed = 4 * np.hypot(measured_norms.stderr, norms.stderr[name]) + 0.05 * predicted
        assert np.all(np.abs(measured_norms.mean - predicted) < allowed), name
        assert np.any(np.abs(measured_norms.mean - predicted * 1.2) > allowed), name


def peaked(heads):
    """A norm above peaked attention whose logits are somewhat random."""
    log_p = np.log([[0.7, 0.2, 0.05, 0.05], [0.1, 0.8, 0.05, 0.05], [0.3, 0.1, 0.5, 0.1], [0.1, 0.1, 0.1, 0.7]])
    attention = random_softmax(T, heads, tau=0.5, bias=log_p, draws=None if heads else 128, chains=4)
    return kp.Transformer(attention, norm=kp.Norm("post", "rms"), residual=kp.Residual(attention=(0.2, 1.0)))


@pytest.mark.slow
def test_infinitely_many_heads_need_no_correction():
    """What the first order misses under a norm falls as 1/heads: nothing is left of it, nor is anything refused."""
    norms = gradient_norms(peaked(None), KERNEL, COTANGENT, width=128)
    few, many = (measured(peaked(None), KERNEL, 128, 2000, factor=LOSS, heads=h, batch=100) for h in (1, 8))
    for name in ("query", "rescale"):
        predicted, own = getattr(norms, name)[0], norms.stderr[name][0]
        # One head misses all of the correction, eight an eighth: 8/7 of their mean less 1/7 of its is the limit.
        limit = (8 * many[name][0][0] - few[name][0][0]) / 7
        error = np.hypot(np.hypot(8 * many[name][1][0], few[name][1][0]) / 7, own)
        assert abs(limit - predicted) < 4 * error + 0.03 * predicted, name
    rescale, error = (part[0] for part in few["rescale"])
    assert rescale + 4 * error < 0.7 * norms.rescale[0]


def test_the_exact_row_of_random_attention():
    """It is the first-order one under infinitely many heads; for a few it isn't known where something bends above."""
    model = peaked(None)
    exact, first = (gradient_norms(model, KERNEL, query_method=m) for m in ("exact", "first_order"))
    assert exact == first
    assert exact.query_exact.all()
    assert "mix_… and residual weights" in exact.notes[0]
    with pytest.raises(ValueError, match="'exact': layer 1: under random attention of 2 heads it isn't known"):
        gradient_norms(peaked(2), KERNEL, query_method="exact")
    alone = kp.Transformer(random_softmax(T, 2, chains=2))
    assert gradient_norms(alone, KERNEL, query_method="sampled").query_exact.all()
