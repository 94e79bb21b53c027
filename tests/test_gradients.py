"""Expected gradient norms: right values, an independent recursion, networks that were drawn, and the door."""

import jax
import numpy as np
import pytest

import kernelprop as kp
from kernelprop import cotangents, gradient_scans, memory
from kernelprop.gradients import gradient_norms
from tests.gradient_cases import COTANGENT, KERNEL, SMOOTH, T, softmax_matrices
from tests.naive_gradients import naive
from tests.sampled_gradients import measured


def espa_network():
    return kp.Transformer(
        kp.espa(8, gammas=[np.inf, 1, 10 ** (-1 / 3), 10 ** (-2 / 3), 0.1]),
        mlp=kp.MLP("gelu", expansion=1),
        residual=kp.Residual(attention=(0.8, 0.6), mlp=(0.8, 0.6)),
    )


TABLE = {
    "query": [0.107655745247, 0.0482358361558, 0.0270633716513, 0.0154464154877],
    "value": [1.64354255859, 1.54061066092, 1.43220285046, 1.29347481601],
    "mlp_in": [0.707676616413, 0.718527590213, 0.718828356281, 0.704154864026],
    "mlp_out": [0.749104708755, 0.719917492906, 0.689100770235, 0.655306458765],
}


def test_the_table():
    kernel = 0.7 * np.eye(8) + 0.3
    norms = gradient_norms(espa_network(), kernel, width=16)
    for name, expected in TABLE.items():
        np.testing.assert_allclose(getattr(norms, name) / 256, expected, rtol=1e-11)
    np.testing.assert_array_equal(norms.output, norms.value)
    assert norms.key.tolist() == [0, 0, 0, 0]
    assert not norms.query_exact.any()
    assert norms.width == 16
    assert "exact" in norms.notes[0]
    np.testing.assert_allclose(kp.propagate(espa_network(), kernel).kernels[-1][0, 7], 0.232611074131816, rtol=1e-12)


def test_checkpointing_changes_nothing_but_the_memory():
    kernel = 0.7 * np.eye(8) + 0.3
    plain = gradient_norms(espa_network(), kernel, keep_cotangents=True)
    again = gradient_norms(espa_network(), kernel, keep_cotangents=True, checkpoint=True)
    for name in (*TABLE, "output", "attention_alpha", "input", "cotangents"):
        np.testing.assert_allclose(getattr(again, name), getattr(plain, name), rtol=1e-13)
    assert plain.cotangents.shape == (5, 8, 8)
    np.testing.assert_array_equal(plain.cotangents[4], np.eye(8))
    np.testing.assert_allclose(np.trace(plain.cotangents[0]), plain.input, rtol=1e-14)


def test_attention_alone():
    model = kp.Transformer(kp.espa(16, 12, gamma=0.005))
    norms = gradient_norms(model, 0.8 * np.eye(16) + 0.2)
    np.testing.assert_allclose(norms.value, 22.5572615725, rtol=1e-11)
    expected = [0.22165554554, 0.069130674377, 0.0748501527928, 0.0746476190138]
    np.testing.assert_allclose(norms.query[[0, 1, 2, 11]], expected, rtol=1e-11)
    assert norms.query_exact.all()
    assert norms.mlp_in is None
    assert norms.attention_alpha is None
    # Structured and given matrices are one operator.
    dense = gradient_norms(kp.Transformer(kp.dense(model.attention.as_matrix())), 0.8 * np.eye(16) + 0.2)
    for name in ("query", "value", "bias", "rescale", "input"):
        np.testing.assert_allclose(getattr(dense, name), getattr(norms, name), rtol=1e-10)


COTANGENTS = {"last": cotangents.last_position, "mean": cotangents.mean_pooled, "all": cotangents.every_position}


@pytest.mark.parametrize("name", COTANGENTS)
def test_cotangents_by_name(name):
    model = kp.Transformer(kp.dense(softmax_matrices(2)))
    by_name, given = (gradient_norms(model, KERNEL, c) for c in (name, COTANGENTS[name](T)))
    assert by_name == given


def test_the_cross_entropy_at_initialisation():
    """Readout of variance 1/d: gradients of the mean loss by the last layer, drawn."""
    targets, vocabulary, width = [0, 2, 2, 1], 5, 20
    expected = cotangents.cross_entropy(targets, vocabulary, width)
    rng = np.random.default_rng(0)
    grams = []
    for _ in range(4000):
        readout = rng.normal(size=(width, vocabulary)) / np.sqrt(width)
        error = np.full((T, vocabulary), 1 / vocabulary) - np.eye(vocabulary)[targets]
        g = error @ readout.T / T
        grams.append(g @ g.T / width)
    mean, stderr = np.mean(grams, 0), np.std(grams, 0) / np.sqrt(len(grams))
    assert np.all(np.abs(mean - expected) < 4.5 * stderr)
    uniform = cotangents.cross_entropy_uniform(T, vocabulary, width)
    np.testing.assert_allclose(uniform, np.eye(T) * (1 - 1 / 5) / (16 * 20))


def test_results_are_stored(tmp_path):
    model = kp.Transformer(kp.dense(softmax_matrices(2)), mlp=kp.MLP("relu"), norm="post")
    norms = gradient_norms(model, KERNEL, query_method="sampled", draws=8, keep_cotangents=True)
    norms.save(tmp_path / "norms.npz")
    assert kp.load(tmp_path / "norms.npz") == norms


def test_float32_on_request():
    norms = gradient_norms(kp.Transformer(kp.dense(softmax_matrices(2))), KERNEL, dtype="float32")
    exact = gradient_norms(kp.Transformer(kp.dense(softmax_matrices(2))), KERNEL)
    assert norms.value.dtype == norms.query.dtype == np.float32
    assert exact.value.dtype == np.float64
    np.testing.assert_allclose(norms.query, exact.query, rtol=1e-4)


def test_a_sweep_compiles_once():
    model = lambda gamma: kp.Transformer(kp.espa(8, 4, gamma=gamma))  # noqa: E731
    gradient_norms(model(0.1), np.eye(8))
    before = gradient_scans.scans._cache_size()
    for gamma in (0.02, 0.3):
        gradient_norms(model(gamma), np.eye(8))
    assert gradient_scans.scans._cache_size() == before


def test_jax_settings_are_left_alone():
    before = jax.config.jax_enable_x64
    gradient_norms(kp.Transformer(kp.uniform(4)), KERNEL)
    assert jax.config.jax_enable_x64 is before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"kernel0": np.eye(3)}, "kernel0: 3 positions, but the attention has 4"),
        ({"kernel0": np.ones((2, 4, 4))}, r"kernel0: shape \(2, 4, 4\) is not \(T, T\)"),
        ({"cotangent": "first"}, "cotangent: 'first' is unknown; use 'all', 'last', 'mean'"),
        ({"cotangent": np.eye(3)}, r"cotangent: shape \(3, 3\) does not fit 4 positions"),
        ({"cotangent": -np.eye(4)}, "cotangent: position 0: the diagonal is -1"),
        ({"width": 0}, "width: 0 is too small"),
        ({"query_method": "second_order"}, "query_method: 'second_order' is unknown"),
        ({"query_method": "exact", "checkpoint": True}, "query_method: 'exact' needs all layers' kernels"),
        ({"query_method": "sampled", "draws": 1}, "draws: 1 is too small"),
        ({"query_method": "sampled", "seed": 2**32}, "seed: 4294967296 is outside 0 to 4294967295"),
        ({"dtype": "float16"}, "use float32 or float64"),
    ],
)
def test_bad_input_is_refused_in_one_line(arguments, message):
    settings = {"kernel0": np.eye(4)} | arguments
    with pytest.raises(ValueError, match=message) as error:
        gradient_norms(kp.Transformer(kp.uniform(4), depth=2), **settings)
    assert "\n" not in str(error.value)


def test_targets_are_checked():
    with pytest.raises(ValueError, match="targets: position 1: id 7 is outside 0 to 4"):
        cotangents.cross_entropy([0, 7], 5, 1)
    with pytest.raises(ValueError, match="targets: token ids, one a position, are wanted; float64"):
        cotangents.cross_entropy([0.5, 1.0], 5, 1)


def test_an_exact_row_that_would_take_hours_is_refused():
    with pytest.raises(ValueError, match=r"'exact' takes about 4 L² T⁵ = .* use 'sampled'"):
        gradient_norms(kp.Transformer(kp.uniform(512), depth=48), np.eye(512), query_method="exact")


def test_what_cannot_fit_in_memory_is_refused(monkeypatch):
    monkeypatch.setattr(memory, "available_bytes", lambda: 60 * 64 * 64 * 8)
    model = kp.Transformer(kp.uniform(64), depth=100)
    with pytest.raises(ValueError, match=r"112 kernels of 32\.0 KiB need 3\.5 MiB.*use checkpoint=True"):
        gradient_norms(model, np.eye(64))
    assert gradient_norms(model, np.eye(64), checkpoint=True).value.shape == (100,)
