"""Random queries and keys backward: the value's and the score's path."""

import numpy as np
import pytest

import kernelprop as kp
from kernelprop.attention.random_softmax import random_softmax
from kernelprop.gradients import gradient_norms
from tests.gradient_cases import COTANGENT, KERNEL, LOSS, T
from tests.sampled_gradients import measured

RESIDUAL = kp.Residual(attention=(0.6, 0.8))


def test_drawn_networks_with_random_logits():
    """Causal, rescaled, with gains: value, query, key and input norms of networks of eight heads.

    Logits of standard deviation about 1.3: without the score's way back the input's norm would be far off.
    """
    gains = kp.Gains(query=1.1, key=0.8, value=1.2, output=0.9, temperature=1.3)
    attention = random_softmax(T, tau=1.2, causal=True, rescale=[0.7, 1.0, 1.3, 1.1], draws=256, chains=8)
    model = kp.Transformer(attention, depth=2, residual=RESIDUAL, gains=gains)
    norms = gradient_norms(model, KERNEL, COTANGENT, width=128)
    found = measured(model, KERNEL, 128, 1000, factor=LOSS, heads=8, batch=100)
    for name in ("value", "output", "query", "key", "input"):
        mean, error = found[name]
        predicted, own = getattr(norms, name), norms.stderr[name]
        # A finite width and head width leave a few per cent: 1/d times the depth's two layers, and 1/d_k.
        assert np.all(np.abs(mean - predicted) < 4 * np.hypot(error, own) + 0.06 * predicted), name
    silent = gradient_norms(
        kp.Transformer(attention.scaled_logits(0.0), depth=2, residual=RESIDUAL, gains=gains), KERNEL, width=128
    )
    assert silent.query.tolist() == silent.key.tolist() == [0.0, 0.0]


def test_the_score_s_way_back_counts():
    """Theory's four-layer Pre-RMS network at logit standard deviation 1: the input's cotangent grows by about 30 %."""
    model = kp.Transformer(
        random_softmax(T, draws=256), depth=4, norm=kp.Norm("pre", "rms"), residual=kp.Residual((1, 1))
    )
    kernel = 0.7 * np.eye(T) + 0.3
    norms = gradient_norms(model, kernel, keep_cotangents=True)
    found = measured(model, kernel, 128, 800, factor=np.eye(T), heads=8, batch=100)
    mean, error = found["input"]
    predicted = norms.input * 128
    assert abs(mean - predicted) < 4 * error + 0.03 * predicted
    assert norms.cotangents.shape == norms.stderr["cotangents"].shape == (5, T, T)
    assert norms.query_exact.tolist() == [False] * 3 + [True]


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
