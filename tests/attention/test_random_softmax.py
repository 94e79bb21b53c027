"""The description of random attention: what it accepts, keeps and refuses."""

import jax
import numpy as np
import pytest

from kernelprop.attention.random_softmax import random_softmax, rotary_frequencies, shaped_attention


def test_a_description_says_what_it_is():
    layer = random_softmax(5, tau=2.0, causal=True, bias=np.ones((5, 5)))
    assert (layer.length, layer.depth, layer.heads, layer.is_random, layer.bias_count) == (5, None, None, True, 1)
    np.testing.assert_array_equal(layer.mask, np.tri(5, dtype=bool))
    np.testing.assert_array_equal(layer.bias, np.tri(5))
    assert not random_softmax(5, logit_scale="linear").is_random


def test_rows_that_are_alike_are_kept_once():
    assert random_softmax(5, mask=[True] * 4 + [False]).mask.shape == (1, 5)
    assert random_softmax(5).bias.shape == (1, 5)


def test_numbers_are_leaves_so_that_a_sweep_has_one_structure():
    one = random_softmax(4, tau=1.0, seed=3, bias=np.eye(4))
    other = random_softmax(4, tau=2.5, seed=9, bias=np.ones((4, 4)))
    assert jax.tree.structure(one) == jax.tree.structure(other)
    assert {np.shape(leaf) for leaf in jax.tree.leaves(one)} == {(), (4, 4)}
    assert float(one.scaled_logits(3.0).tau) == 3.0
    shaped = shaped_attention(4, 1.0, 0.5, 0.25, seed=3)
    assert [float(w) for w in (shaped.identity_weight, shaped.softmax_weight, shaped.centre_weight)] == [1, 0.5, 0.25]


def test_draws_follow_the_heads_and_the_biases():
    biases = np.zeros((3, 4, 4))
    assert random_softmax(4, heads=6).draws == 6
    assert random_softmax(4, bias=biases).draws % 3 == 0
    assert random_softmax(4, heads=3, bias=biases).bias_count == 3


def test_the_estimate_is_told_in_words():
    assert "8 independent chains of 32 draws a layer, seed 7" in random_softmax(4, seed=7).in_words()
    words = random_softmax(4, heads=2, chains=16).in_words()
    assert "16 random networks of 2 heads" in words
    assert "the standard error times 4" in words


def test_rotary_frequencies_are_geometric():
    frequencies = rotary_frequencies(64)
    assert frequencies.shape == (32,)
    np.testing.assert_allclose(frequencies[[0, 16]], [1, 0.01])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        # Case 09.
        (
            lambda: random_softmax(3, mask=[[True, True, False]] * 2 + [[False] * 3]),
            "random_softmax: position 2: every key is masked",
        ),
        # Case 49.
        (lambda: random_softmax(3, seed=-1), "seed: -1 is outside 0 to 4294967295"),
        (lambda: random_softmax(3, seed=2**32), "seed: 4294967296 is outside"),
        (lambda: random_softmax(3, seed=2**80), "is outside"),
        (lambda: random_softmax(3, seed=1.5), "seed: a whole number is wanted"),
        (lambda: random_softmax(0), "length: 0 is too small"),
        (lambda: random_softmax(3, heads=0), "heads: 0 is too small"),
        (lambda: random_softmax(3, tau=np.nan), "tau: nan"),
        (lambda: random_softmax(3, query_gain=np.inf), "query_gain: inf"),
        (lambda: random_softmax(3, key_gain=[1.0, 2.0]), r"key_gain: one number is wanted, shape \(2,\)"),
        (lambda: random_softmax(3, draws=0), "draws: 0 is too small"),
        (lambda: random_softmax(3, chains=1), "chains: 1 is too small; it must be at least 2"),
        (lambda: random_softmax(3, heads=2, draws=10), "draws=10 beside heads=2"),
        (lambda: random_softmax(3, bias=np.zeros((2, 3, 3)), draws=7), "draws=7 is no multiple of the 2 biases"),
        (lambda: random_softmax(3, heads=4, bias=np.zeros((2, 3, 3))), "2 biases for heads=4"),
        (lambda: random_softmax(3, bias=np.zeros((2, 2))), r"bias: shape \(2, 2\) is neither \(3, 3\)"),
        (lambda: random_softmax(3, mask=np.ones((2, 2), bool)), r"mask: shape \(2, 2\) is neither"),
        (lambda: random_softmax(3, mask=[1, 0, 1]), "is not bool"),
        (lambda: random_softmax(3, logit_scale="cube"), "logit_scale: 'cube' is unknown"),
        (lambda: random_softmax(3, rotary=10_000), r"rotary: shape \(\) is not \(m,\)"),
        (lambda: random_softmax(3, rotary=[np.nan]), "rotary: entry .* is nan"),
        (lambda: random_softmax(3, rescale=[1, -1, 1]), "rescale: position 1: -1 is not positive"),
        (lambda: rotary_frequencies(5), "head_width: 5 is odd"),
        (lambda: rotary_frequencies(4, base=0), "base: 0 is not positive"),
        (lambda: shaped_attention(3, alpha=np.nan), "shaped_attention: alpha: nan"),
        (lambda: shaped_attention(3, seed=-4), "seed: -4 is outside"),
    ],
)
def test_bad_input_is_refused_in_one_line(call, message):
    with pytest.raises(ValueError, match=message) as error:
        call()
    assert "\n" not in str(error.value)


def test_the_seeds_at_the_ends_are_accepted_and_kept_whole():
    assert [int(random_softmax(3, seed=seed).seed) for seed in (0, 2**32 - 1)] == [0, 2**32 - 1]
