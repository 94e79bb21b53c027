"""The forward engine over independent chains of random attention."""

import numpy as np

import kernelprop as kp
from kernelprop import infinite
from kernelprop.attention.biases import softmax_attention
from kernelprop.attention.random_softmax import random_softmax
from tests.layers.random_cases import BIAS, KERNELS, PLAIN, T


def run(kernel, **options):
    model = kp.Transformer(random_softmax(T, causal=True, **options), depth=2)
    return kp.propagate(model, kernel, observables="all")


def test_chains_are_keyed_by_the_seed():
    kernels = {seed: run(PLAIN, seed=seed).kernels for seed in (0, 1, 7, 2**32 - 1)}
    np.testing.assert_array_equal(run(PLAIN, seed=7).kernels, kernels[7])
    assert len({float(kernel[-1][1, 1]) for kernel in kernels.values()}) == 4


def test_a_sweep_over_numbers_and_seeds_compiles_once():
    run(PLAIN)
    before = infinite._scan_chains._cache_size()
    for tau in (0.3, 2.0):
        run(PLAIN, tau=tau, key_gain=1.1, seed=9)
    assert infinite._scan_chains._cache_size() == before


def test_a_batch_of_kernels_has_its_axes_in_front():
    both, one = run(KERNELS[:2]), run(KERNELS[1])
    assert both.kernels_stderr.shape == (2, 3, T, T)
    np.testing.assert_allclose(both.kernels[1], one.kernels, rtol=1e-12)
    np.testing.assert_allclose(both.mean_correlation_stderr[1], one.mean_correlation_stderr, rtol=1e-9)
    np.testing.assert_array_equal(one.kernels_stderr[0], 0)
    assert (one.rank_residual_stderr[1:] > 0).all()


def test_notes_say_how_the_means_came_about(tmp_path):
    evolution = run(PLAIN, seed=7)
    assert "8 independent chains of 32 draws a layer, seed 7" in evolution.notes[0]
    evolution.save(tmp_path / "run.npz")
    back = kp.load(tmp_path / "run.npz")
    assert back == evolution
    assert back.description.attention.seed.dtype == np.uint32


def test_spectral_observables_have_standard_errors_too():
    evolution = run(PLAIN)
    assert evolution.eigenvalues_stderr.shape == (3, T)
    assert (evolution.stable_rank_stderr[1:] > 0).all()
    assert evolution.attention_entropy is None


def test_a_hundred_layers_collapse_without_nan_in_float32_too():
    model = kp.Transformer(random_softmax(T), depth=100)
    evolution = kp.propagate(model, kp.kernels.equicorrelated(T, 0.5), dtype="float32")
    assert evolution.kernels.dtype == evolution.kernels_stderr.dtype == np.float32
    assert np.isfinite(evolution.kernels).all()
    assert evolution.below_floor[20:].all()


def test_logits_that_vanish_leave_given_attention_and_no_error():
    mask = np.array([True, True, True, False, True])
    vanishing = kp.Transformer(random_softmax(T, bias=BIAS, mask=mask, logit_scale="linear"), depth=3)
    given = kp.Transformer(softmax_attention(BIAS, mask), depth=3)
    one, other = (kp.propagate(model, PLAIN) for model in (vanishing, given))
    np.testing.assert_allclose(one.kernels, other.kernels, rtol=1e-12)
    assert one.kernels_stderr is None
    assert one.notes == ()
