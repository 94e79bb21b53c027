"""Expected gradient norms: right values, an independent recursion, networks that were drawn, and the door."""

from dataclasses import replace

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
    norms = gradient_norms(espa_network(), kernel, width=16, keep_cotangents=True)
    for name, expected in TABLE.items():
        np.testing.assert_allclose(getattr(norms, name) / 256, expected, rtol=1e-11)
    np.testing.assert_array_equal(norms.output, norms.value)
    assert norms.key.tolist() == [0, 0, 0, 0]
    assert not norms.query_exact.any()
    assert norms.width == 16
    assert "exact" in norms.notes[0]
    np.testing.assert_allclose(kp.propagate(espa_network(), kernel).kernels[-1][0, 7], 0.232611074131816, rtol=1e-12)


@pytest.mark.slow  # two compilations of the way back
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


@pytest.mark.parametrize("scale", [0.5, 3.0])
def test_queries_feel_the_sixth_power_of_the_input_and_values_the_second(scale):
    model = kp.Transformer(kp.espa(16, 12, gamma=0.005))
    kernel = 0.8 * np.eye(16) + 0.2
    one, other = gradient_norms(model, kernel), gradient_norms(model, scale**2 * kernel)
    np.testing.assert_allclose(other.query, scale**6 * one.query, rtol=1e-12)
    np.testing.assert_allclose(other.value, scale**2 * one.value, rtol=1e-12)


def test_one_layer_is_the_brute_force_jacobian():
    """Random ``B``, ``D``, ``τ``: automatic derivatives averaged over draws; a norm 12 % off is rejected."""
    model = kp.Transformer(kp.dense(softmax_matrices()), gains=kp.Gains(temperature=2.0, key=1.3))
    norms = gradient_norms(model, KERNEL, width=32)
    found = measured(model, KERNEL, 32, 4000, factor=np.eye(T), batch=400)
    for name in ("query", "value", "output", "bias", "rescale", "input"):
        mean, stderr = found[name]
        # Exact at every width here; six independent checks at four standard errors fail once in 2600 runs.
        assert np.all(np.abs(mean - getattr(norms, name)) < 4 * stderr), name
    mean, stderr = found["query"]
    assert np.all(stderr < 0.03 * mean)
    assert np.all(np.abs(mean - norms.query * 1.12) > 4 * stderr)
    assert found["key"][0].max() == 0


def test_case_58():
    """Gradients of given networks by hand: what of them are expectations over values of unit variance."""
    # (a) equal rows: queries receive nothing (the rounding of a rounding), keys exactly nothing, values do.
    rows = np.tile([1.0, 2.0], (3, 1))
    norms = gradient_norms(kp.Transformer(kp.uniform(3)), rows @ rows.T)
    assert norms.query[0] < 1e-50
    assert norms.key.tolist() == [0.0]
    np.testing.assert_allclose(norms.value, 3 * 5, rtol=1e-14)
    # (c) zero queries: dS_i/dw_q = x_i Var(x), dS/dw_k = 0, at x = (1, 2), w = 1.
    x = np.array([1.0, 2.0])
    norms = gradient_norms(kp.Transformer(kp.uniform(2)), np.outer(x, x))
    # One feature, values x w with w² = 1: t is Var(x)², and the sum over positions of x_i² of it is the square norm.
    np.testing.assert_allclose(norms.query, (0.25 * x) @ (0.25 * x), rtol=1e-14)
    assert norms.key.tolist() == [0.0]
    # (d) nearly collapsed rows: no digits lost, relative to the variance of x itself.
    x = np.array([1.0, 1.001])
    norms = gradient_norms(kp.Transformer(kp.uniform(2)), np.outer(x, x))
    variance = ((x[1] - x[0]) / 2) ** 2
    np.testing.assert_allclose(norms.query, variance**2 * (x @ x), rtol=1e-8)


@pytest.mark.parametrize("norm", [None, "pre"])
@pytest.mark.parametrize("attention", [kp.uniform(6), kp.espa(6, gammas=[np.inf, 0.3])])
def test_equal_rows_leave_queries_nothing(attention, norm):
    norms = gradient_norms(kp.Transformer(attention, norm=norm), np.full((6, 6), 0.7))
    assert norms.query[0] < 1e-30
    assert norms.value[0] > 0.1


def test_a_collapsed_kernel_keeps_its_queries_digits():
    """Deep uniform attention with a skip: the centred part falls to 1e-18, and queries with its square."""
    model = kp.Transformer(kp.uniform(4), depth=200, residual=kp.Residual(attention=(np.sqrt(0.9), np.sqrt(0.1))))
    norms = gradient_norms(model, np.eye(4))
    # Σ_l = s_l 11ᵀ/T + 0.9^l C, in closed form; t = ‖CΣC‖²/T² for uniform attention.
    layer = np.arange(200)
    apart = 0.9**layer
    common = np.ones(200)
    t = 3 * apart**2 / 16
    pulled = 1.0  # 1ᵀG1/T stays 1, the rest falls as 0.9 from above.
    rest = 0.9 ** (199 - layer)
    expected = 0.1 * t * (common * pulled + 3 * apart * rest)
    np.testing.assert_allclose(norms.query, expected, rtol=1e-9)


def test_a_mixture_that_one_softmax_makes_is_no_value_skip():
    """The non-causal U-SPA is ``αI + β11ᵀ/T`` inside, and one softmax outside."""
    operator = kp.uspa(4, 2, causal=False)
    model, dense = kp.Transformer(operator), kp.Transformer(kp.dense(operator.as_matrix()))
    one, other = gradient_norms(model, KERNEL), gradient_norms(dense, KERNEL)
    np.testing.assert_allclose(one.query, other.query, rtol=1e-10)
    assert one.mix_alpha is None


def test_value_skipinit():
    """The whole ``A`` everywhere but in the score's rows, which take ``βD`` and ``P`` alone."""
    matrices = softmax_matrices(2)
    model = kp.Transformer(kp.mix(matrices, 0.7, [0.5, -0.2]))
    norms = gradient_norms(model, KERNEL, COTANGENT)
    whole = np.stack([0.7 * np.eye(T) + b * m for b, m in zip((0.5, -0.2), matrices, strict=True)])
    plain = naive(whole[:, None], KERNEL, COTANGENT)
    np.testing.assert_allclose(norms.value, plain["value"], rtol=1e-12)
    kernel = KERNEL
    cotangent = [whole[1].T @ (COTANGENT) @ whole[1], COTANGENT]
    for layer, beta in enumerate((0.5, -0.2)):
        inner = naive(matrices[layer][None, None], kernel, cotangent[layer])
        np.testing.assert_allclose(norms.query[layer], beta**2 * inner["query"][0], rtol=1e-11)
        np.testing.assert_allclose(norms.bias[layer], beta**2 * inner["bias"][0], rtol=1e-11)
        np.testing.assert_allclose(norms.mix_beta[layer], inner["value"][0], rtol=1e-11)
        np.testing.assert_allclose(norms.mix_alpha[layer], np.sum(cotangent[layer] * kernel), rtol=1e-11)
        kernel = whole[layer] @ kernel @ whole[layer].T


def test_untrained_skipinit_has_silent_queries():
    norms = gradient_norms(kp.Transformer(kp.mix(kp.espa(4, 2), 1.0, 0.0)), KERNEL)
    assert norms.query.tolist() == norms.rescale.tolist() == [0.0, 0.0]
    assert (norms.mix_beta > 0).all()


def test_attention_that_no_softmax_makes():
    matrices = softmax_matrices(2)
    matrices[1, 2, 3] *= -1
    norms = gradient_norms(kp.Transformer(kp.dense(matrices)), KERNEL)
    assert np.isnan(norms.query).tolist() == [False, True]
    assert np.isnan(norms.bias).tolist() == [False, True]
    assert np.isfinite(norms.value).all()
    assert "attention of layer 2 (negative entries" in norms.notes[0]


def test_what_overflows_is_not_said_to_have_no_softmax():
    """The same two layers at a scale whose cube is no number: one overflows, and the other still has no softmax."""
    matrices = softmax_matrices(2)
    matrices[1, 2, 3] *= -1
    norms = gradient_norms(kp.Transformer(kp.dense(matrices)), 1e110 * KERNEL)
    assert np.isinf(norms.query).tolist() == [True, False]
    assert np.isnan(norms.query).tolist() == [False, True]
    assert "no softmax makes the attention of layer 2 (" in norms.notes[0]
    assert norms.notes[1] == "the query row overflows in layer 1: float64 has no number so large"


@pytest.mark.parametrize(
    ("dtype", "scales"),
    [
        # The squares of kernels are no numbers of the type; the rows that they make are.
        ("float64", [(1.0, 1.0), (1e160, 1e-200), (1e200, 1e-300), (1e-160, 1e300), (1e-200, 1.0), (1e200, 1.0)]),
        ("float32", [(1e20, 1e-30), (1e-20, 1e30)]),
    ],
)
def test_rows_are_right_wherever_they_are_numbers_of_the_type(dtype, scales):
    """Uniform attention over orthogonal positions, ``Σ = sI`` and ``G = cI``: rows in closed form."""
    model = kp.Transformer(kp.uniform(3), residual=kp.Residual(attention=(1, 1)))
    for s, c in scales:
        norms = gradient_norms(model, s * np.eye(3), c * np.eye(3), dtype=dtype)
        # t_ii = ‖CΣC‖²/T² = 2s²/9, (PΣPᵀ)_ii = s/3, and each key's spread about the mean is 2s/3.
        with np.errstate(over="ignore", under="ignore"):
            cube = np.float64(s) * (np.float64(s) * c) * s
        rounding = 8 * np.finfo(dtype).eps
        np.testing.assert_allclose(norms.query, 2 * cube / 3, rtol=rounding)
        np.testing.assert_allclose(norms.query_rounding, cube / 3, rtol=rounding)
        np.testing.assert_allclose(norms.bias, 2 * s * c / 3, rtol=rounding)
        np.testing.assert_allclose(norms.rescale, s * c, rtol=rounding)
        assert len(norms.notes) == np.isinf(cube)


def test_attention_to_one_position_leaves_queries_exactly_nothing():
    """A softmax of one entry has nothing to move; rounding would else pass for a gradient in the deep layers."""
    kernel = kp.kernels.equicorrelated(4, 0.3)
    settings = {"mlp": kp.MLP("relu", gain_out=2**0.5), "residual": kp.Residual(attention=(1, 1), mlp=(1, 1))}
    norms = gradient_norms(kp.Transformer(kp.identity(4), 6, **settings), kernel)
    assert norms.query.tolist() == norms.bias.tolist() == [0.0] * 6
    assert kp.dead_queries(norms) == [1, 2, 3, 4, 5, 6]
    assert (norms.rescale > 0).all()
    # The control: with a second position to attend to, row 3 alone has a gradient.
    one_hot = np.eye(4)[[2, 0, 0, 3]]
    soft = np.where(np.arange(4)[:, None] == 3, [[0.0, 0.4, 0.0, 0.6]], one_hot)
    norms = gradient_norms(kp.Transformer(kp.mix(np.stack([one_hot, soft]), 0.7, 0.5)), kernel)
    assert norms.query[0] == norms.bias[0] == 0
    # t_33 = (P_1 P_3 |x_1 − x_3|²)², the squared distance being 1.4; G = I, Σ_33 = 1 at a first layer.
    first = gradient_norms(kp.Transformer(kp.mix(np.stack([soft, one_hot]), 0.0, 1.0)), kernel, np.diag([0, 0, 0, 1.0]))
    np.testing.assert_allclose(first.query, [(0.24 * 1.4) ** 2, 0], rtol=1e-14)


@pytest.mark.slow  # compilations of the corrections
@pytest.mark.parametrize("query_method", ["exact", "sampled"])
def test_corrections_of_attention_to_one_position_are_nothing(query_method):
    one_hot = np.eye(4)[[2, 0, 0, 3]]
    model = kp.Transformer(kp.mix(np.stack([one_hot] * 2), 0.7, 0.5), mlp=kp.MLP("relu"), norm="pre", residual=SMOOTH)
    norms = gradient_norms(model, KERNEL, query_method=query_method, draws=4)
    assert norms.query.tolist() == norms.bias.tolist() == [0.0, 0.0]
    if norms.stderr is not None:
        assert norms.stderr["query"].tolist() == norms.stderr["bias"].tolist() == [0.0, 0.0]


def test_positions_add_to_the_input():
    model = kp.Transformer(kp.uniform(4), mlp=kp.MLP("relu"), positions=kp.kernels.positional_learned(4, 0.5))
    bare = kp.Transformer(kp.uniform(4), mlp=kp.MLP("relu"))
    np.testing.assert_allclose(
        gradient_norms(model, KERNEL).query, gradient_norms(bare, KERNEL + 0.5 * np.eye(4)).query, rtol=1e-13
    )


def test_the_width_multiplies():
    model = kp.Transformer(kp.mix(softmax_matrices(2), 1.0, 0.4), mlp=kp.MLP("relu", bias_in=0.1), residual=SMOOTH)
    one, wide = gradient_norms(model, KERNEL), gradient_norms(model, KERNEL, width=10)
    for name in ("query", "value", "mlp_in", "mlp_out"):
        np.testing.assert_allclose(getattr(wide, name), 100 * getattr(one, name))
    for name in ("bias", "rescale", "mix_alpha", "mlp_alpha", "mlp_bias_in", "input"):
        np.testing.assert_allclose(getattr(wide, name), 10 * getattr(one, name))
    np.testing.assert_allclose(wide.relative("value"), wide.value / 10)
    np.testing.assert_allclose(wide.relative("mlp_in"), wide.mlp_in / 40)
    assert np.isinf(wide.relative("query")).all()
    with pytest.raises(ValueError, match="relative: 'mlp_gate' is no weight of this network; known: query"):
        wide.relative("mlp_gate")


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, [True] * 3),
        ({"mlp": kp.MLP("linear")}, [True] * 3),
        ({"mlp": kp.MLP("relu")}, [False] * 3),
        ({"mlp": kp.MLP("relu"), "parallel": True}, [False, False, True]),
        ({"norm": "pre"}, [False, False, True]),
        ({"norm": "pre", "mlp": kp.MLP("linear")}, [False] * 3),
        ({"norm": "post"}, [False] * 3),
        ({"norm": kp.Norm("pre", final=True)}, [False] * 3),
        ({"mlp": kp.MLP("relu"), "residual": kp.Residual(mlp=(1, [1, 0, 0]))}, [False, True, True]),
    ],
)
def test_where_the_query_row_is_exact(settings, expected):
    from kernelprop.gradient_report import query_is_exact

    assert query_is_exact(kp.Transformer(kp.uniform(4), depth=3, **settings)).tolist() == expected


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
    norms = gradient_norms(kp.Transformer(kp.dense(softmax_matrices(2))), KERNEL)
    norms = replace(norms, stderr={"query": np.ones(2)}, cotangents=np.ones((3, T, T)))
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
        ({"kernel0": np.ones((2, 4, 4))}, r"kernel0: shape \(2, 4, 4\) is not \(T, T\); .* one kernel a call"),
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
