"""Sampled networks against exact results, predictions and themselves."""

import jax
import numpy as np
import pytest

import kernelprop as kp
from kernelprop import storage
from kernelprop.finite import checkpoint, keys
from kernelprop.finite.checkpoint import Progress
from kernelprop.finite.draw import experiment, packed_draw
from kernelprop.finite.inputs import FromKernel
from kernelprop.finite.network import network
from kernelprop.finite.simulation import as_numpy, simulate
from kernelprop.kept_depths import kept_depths

LENGTH = 8
KERNEL = 0.7 * np.eye(LENGTH) + 0.3
# A network whose gradient norms at width 1 are known.
TABLE = kp.Transformer(
    kp.espa(LENGTH, gammas=[np.inf, 1, 10 ** (-1 / 3), 10 ** (-2 / 3), 0.1]),
    mlp=kp.MLP("gelu", expansion=1),
    residual=kp.Residual(attention=(0.8, 0.6), mlp=(0.8, 0.6)),
)
NORMS = {
    "query": [0.107655745247, 0.0482358361558, 0.0270633716513, 0.0154464154877],
    "value": [1.64354255859, 1.54061066092, 1.43220285046, 1.29347481601],
    "mlp_in": [0.707676616413, 0.718527590213, 0.718828356281, 0.704154864026],
    "mlp_out": [0.749104708755, 0.719917492906, 0.689100770235, 0.655306458765],
}
NORMS["output"] = NORMS["value"]
SMALL = kp.Transformer(
    kp.uniform(4, causal=True), depth=2, mlp=kp.MLP("relu", 1), residual=kp.Residual((1, 0.5), (1, 0.5))
)
KERNEL4 = np.eye(4)


@pytest.fixture(scope="module")
def table():
    return simulate(TABLE, KERNEL, width=256, draws=120, key=0, gradients=True, samples=True)


def test_orthogonal_attention_alone_is_exact_in_every_draw():
    """``Σ_L = Π Σ_0 Πᵀ`` to 1e-11, whatever the draw: the spread is rounding."""
    operator = kp.espa(LENGTH, 12)
    model = kp.Transformer(operator)
    exact = {"weights": "orthogonal", "dtype": "float64", "heads": 4}
    found = simulate(model, KERNEL, width=16, draws=4, key=1, keep="all", **exact)
    kernel = KERNEL
    for depth, matrix in enumerate(operator.as_matrix(), 1):
        kernel = matrix @ kernel @ matrix.T
        np.testing.assert_allclose(found.kernels.mean[depth], kernel, rtol=0, atol=1e-11)
    assert found.spread("kernels").max() < 1e-11
    gaussian = simulate(model, KERNEL, width=16, draws=4, key=1, keep="all")
    assert gaussian.spread("kernels")[-1].max() > 0.05


def test_gradient_norms_agree_with_the_table(table):
    """Within 3 standard errors of 2 %; the query row, first order under a GELU, within 3 of 8 %."""
    assert table.draws == 120
    for name, right in NORMS.items():
        estimate = getattr(table, name)
        ratio, stderr = estimate.mean / 256**2 / right, estimate.stderr / 256**2 / right
        resolution = 0.12 if name == "query" else 0.03
        assert stderr.max() < resolution, (name, stderr)
        # The mean over layers, which fail together, has the error of one; single layers get 4.
        assert np.all(np.abs(ratio - 1) < 4 * stderr), (name, ratio, stderr)
        if name != "query":
            assert abs(ratio.mean() - 1) < 3 * stderr.mean(), (name, ratio, stderr)
            assert abs(ratio.mean() - 1.1) > 3 * stderr.mean(), "10 % would not have been seen"
    assert np.all(table.key.mean == 0)
    assert table.mlp_gate is None


def test_the_query_row_of_a_linear_network_is_right_at_infinite_width():
    """Where everything above is linear the first-order row is exact: its ratio tends to 1 as ``1 + c/d``."""
    model = kp.Transformer(TABLE.attention, mlp=kp.MLP("linear", 1), residual=TABLE.residual)
    found = kp.compare(model, KERNEL, widths=(64, 128), draws=1600, gradients=True)
    predicted = found.predicted["query"]
    law = found.width_law("query").limit
    limit, stderr = law.mean / predicted, law.stderr / predicted
    assert np.all(np.abs(limit) < 4 * stderr), (limit, stderr)
    # In the first two layers, whose errors are 3 and 4 %, a row 20 % larger would be rejected.
    assert np.all(np.abs(limit[:2] - 0.2) > 4 * stderr[:2])
    # And what vanishes at infinite width is there at these: the last layer's ratio is far from 1, half as far at 2d.
    distance = found.measured["query"][:, -1] / predicted[-1] - 1
    assert distance[0] > 5 * found.measured_stderr["query"][0, -1] / predicted[-1]
    assert distance[1] < 0.7 * distance[0]


def test_the_kernel_agrees_with_the_prediction(table):
    predicted = kp.propagate(TABLE, KERNEL, keep="last").kernels[0]
    estimate = table.kernel(-1)
    z = (estimate.mean - predicted) / estimate.stderr
    # 36 correlated entries, 120 draws: |z| beyond 4 has a probability under 1 %.
    assert np.abs(z).max() < 4
    # One layer's attention less is rejected.
    shorter = kp.espa(LENGTH, gammas=[np.inf, 1, 10 ** (-1 / 3), 10 ** (-2 / 3)])
    wrong = kp.propagate(kp.Transformer(shorter, residual=kp.Residual((0.8, 0.6))), KERNEL)
    assert np.abs((estimate.mean - wrong.kernels[-1]) / estimate.stderr).max() > 8
    assert predicted[0, 7] == pytest.approx(0.232611074131816, rel=1e-10)


def test_quantiles_and_spread_are_those_of_the_draws(table):
    values = table.samples["value"]
    assert values.shape == (120, 4)
    np.testing.assert_allclose(table.spread("value"), values.std(0, ddof=1), rtol=1e-6)
    np.testing.assert_allclose(table.value.mean, values.mean(0), rtol=1e-6)
    low, middle, high = table.quantiles("value")
    assert np.all((low < middle) & (middle < high))
    with pytest.raises(ValueError, match=r"kernels: single draws were not kept; simulate with samples"):
        table.quantiles("kernels")
    with pytest.raises(ValueError, match="'colour' was not measured"):
        table.spread("colour")


def test_results_are_saved_and_loaded(table, tmp_path):
    table.save(tmp_path / "ensemble.npz")
    assert storage.load(tmp_path / "ensemble.npz") == table
    assert table.table()[4]["mean_correlation"] == table.mean_correlation.mean[4]
    assert [row["layer"] for row in table.gradient_table()] == [1, 2, 3, 4]
    assert set(table.gradients) == {"query", "key", "value", "output", "mlp_in", "mlp_out"}
    with pytest.raises(ValueError, match="depth 2: its kernel was not kept; kept depths: 4"):
        table.kernel(2)


def test_gaussian_spread_grows_with_depth_over_width():
    model = kp.Transformer(kp.identity(4), depth=8)
    spreads = {}
    for width in (64, 256):
        spreads[width] = simulate(model, KERNEL4, width=width, draws=200, key=0).spread("diagonal")
    # Var q_L = Π (1 + 2/d)^{2L} − 1: two Gaussian matrices a layer.
    for width, spread in spreads.items():
        for depth in (2, 8):
            right = np.sqrt((1 + 2 / width) ** (2 * depth) - 1)
            # 4 positions with one relative error of about 1/√(2·200), correlated through the weights.
            assert abs(spread[depth].mean() / right - 1) < 0.2, (width, depth, spread[depth], right)


def test_runs_are_repeated_exactly_and_seeds_matter():
    one, same, other = (simulate(SMALL, KERNEL4, width=8, draws=4, key=key) for key in (5, 5, 6))
    assert one == same
    assert one != other


def test_the_first_draws_of_a_longer_run_are_those_of_a_shorter_one():
    short, long = (simulate(SMALL, KERNEL4, width=8, draws=n, key=5, samples=True, gradients=True) for n in (3, 4))
    np.testing.assert_array_equal(long.samples["mean_correlation"][:3], short.samples["mean_correlation"])
    np.testing.assert_allclose(long.mean_correlation.mean, long.samples["mean_correlation"].mean(0), rtol=1e-6)


def stopped_after(calls):
    def progress(done, total, seconds):
        seen.append((done, total))
        assert seconds >= 0
        if len(seen) == calls:
            raise KeyboardInterrupt

    seen = []
    return progress, seen


@pytest.fixture
def small_chunks(monkeypatch):
    monkeypatch.setattr("kernelprop.finite.plan.MOST_DRAWS", 3)


def test_an_interrupted_run_keeps_what_is_done_and_goes_on(small_chunks, tmp_path):
    path = tmp_path / "state.npz"
    options = {"width": 8, "draws": 10, "key": 5, "gradients": True, "samples": True}
    whole = simulate(SMALL, KERNEL4, **options)
    progress, seen = stopped_after(2)
    part = simulate(SMALL, KERNEL4, **options, progress=progress, checkpoint=path)
    assert seen == [(3, 10), (6, 10)]
    assert part.draws == 6
    assert part.notes == ("interrupted: 6 of 10 draws",)
    resumed = simulate(SMALL, KERNEL4, **options, checkpoint=path)
    assert resumed.draws == 10
    assert resumed.notes == ()
    np.testing.assert_array_equal(resumed.samples["query"], whole.samples["query"])
    np.testing.assert_allclose(resumed.kernels.mean, whole.kernels.mean, rtol=1e-12)
    np.testing.assert_allclose(resumed.value.stderr, whole.value.stderr, rtol=1e-12)
    # More draws than were asked for first go on from there as well; fewer are refused.
    more = simulate(SMALL, KERNEL4, **options | {"draws": 12}, checkpoint=path)
    assert more.draws == 12
    with pytest.raises(ValueError, match="holds 12 draws, more than the 10 asked for"):
        simulate(SMALL, KERNEL4, **options, checkpoint=path)
    with pytest.raises(ValueError, match="was made with another key; remove it"):
        simulate(SMALL, KERNEL4, **options | {"key": 6}, checkpoint=path)
    with pytest.raises(ValueError, match="was made with another description"):
        simulate(kp.Transformer(kp.uniform(4), depth=2), KERNEL4, **options, checkpoint=path)


def test_an_interrupt_before_two_draws_is_an_interrupt(monkeypatch):
    monkeypatch.setattr("kernelprop.finite.plan.MOST_DRAWS", 1)
    with pytest.raises(KeyboardInterrupt):
        simulate(SMALL, KERNEL4, width=8, draws=4, key=0, progress=stopped_after(1)[0])


def test_an_interrupt_while_a_chunk_is_taken_in_loses_and_repeats_nothing(small_chunks, monkeypatch, tmp_path):
    """Wherever the interrupt falls, moments and single draws are of the same chunks."""
    options = {"width": 8, "draws": 10, "key": 5, "samples": True}
    merge, merged = checkpoint.merge, []

    def interrupted(one, other):
        merged.append(merge(one, other))
        if len(merged) == 2:
            raise KeyboardInterrupt
        return merged[-1]

    monkeypatch.setattr(checkpoint, "merge", interrupted)
    part = simulate(SMALL, KERNEL4, **options, checkpoint=tmp_path / "state.npz")
    monkeypatch.setattr(checkpoint, "merge", merge)
    assert part.draws == len(part.samples["mean_correlation"]) == 6
    resumed = simulate(SMALL, KERNEL4, **options, checkpoint=tmp_path / "state.npz")
    whole = simulate(SMALL, KERNEL4, **options)
    np.testing.assert_array_equal(resumed.samples["rank_residual"], whole.samples["rank_residual"])
    np.testing.assert_allclose(resumed.kernels.mean, whole.kernels.mean, rtol=1e-12)


def test_processes_that_see_different_checkpoints_are_told(monkeypatch, tmp_path):
    monkeypatch.setattr("kernelprop.finite.simulation.of_every_process", lambda done: [done, 3])
    with pytest.raises(ValueError, match=r"holds 0 draws for process 0, and 3 for another; all must see one file"):
        simulate(SMALL, KERNEL4, width=8, draws=4, key=5, checkpoint=tmp_path / "state.npz")


def test_memory_grows_with_the_inputs_of_the_layers_and_not_with_their_weights():
    """What the compiled draw needs, at 8 and at 64 layers: 56 layers more of ``T d`` numbers, not of ``12 d²``."""
    length, width, bytes_of = 4, 64, {}
    for depth in (8, 64):
        model = kp.Transformer(kp.uniform(length), depth=depth, mlp=kp.MLP("relu", 4))
        net = network(model, width, gradients=True)
        fed = (FromKernel(KERNEL4), None, None)
        kept = kept_depths("last", depth, length, 4)
        run = experiment(net, fed, kept, gradients=True, keep_weights=False, dtype="float32")
        with jax.enable_x64(True):
            compiled = jax.jit(packed_draw).lower(as_numpy(run, np.dtype("float32")), keys.root_key(0)).compile()
        bytes_of[depth] = compiled.memory_analysis().temp_size_in_bytes
    growth = (bytes_of[64] - bytes_of[8]) / 56
    weights = 4 * 12 * width**2
    assert bytes_of[8] > weights / 12, "one weight at least is held"
    assert growth < 0.1 * weights
    assert growth < 6 * 4 * length * width + 4096


def test_a_checkpoint_needs_its_folder(tmp_path):
    with pytest.raises(ValueError, match=r"the folder .* does not exist"):
        simulate(SMALL, KERNEL4, width=8, draws=4, key=5, checkpoint=tmp_path / "missing" / "state.npz")


def test_a_foreign_file_is_no_checkpoint(table, tmp_path):
    table.save(tmp_path / "ensemble.npz")
    with pytest.raises(ValueError, match="is no checkpoint of a simulation"):
        Progress({}, tmp_path / "ensemble.npz")


def test_draws_side_by_side_are_the_same_draws(monkeypatch):
    """What an accelerator does: several draws as one batch."""
    alone = simulate(SMALL, KERNEL4, width=8, draws=4, key=2, gradients=True, samples=True)
    from kernelprop.finite import simulation

    original = simulation.make_plan
    monkeypatch.setattr(simulation, "make_plan", lambda *a, **k: original(*a, **k)._replace(together=3, groups=2))
    together = simulate(SMALL, KERNEL4, width=8, draws=4, key=2, gradients=True, samples=True)
    np.testing.assert_allclose(together.samples["value"], alone.samples["value"], rtol=2e-5)
    np.testing.assert_allclose(together.kernels.mean, alone.kernels.mean, rtol=2e-5)


def test_weights_drawn_again_are_the_weights_kept(monkeypatch):
    kept = simulate(SMALL, KERNEL4, width=8, draws=4, key=2, gradients=True, samples=True)
    monkeypatch.setattr("kernelprop.finite.plan.LARGEST_KEPT_WEIGHTS", 0)
    drawn_again = simulate(SMALL, KERNEL4, width=8, draws=4, key=2, gradients=True, samples=True)
    for name, estimate in kept.gradients.items():
        np.testing.assert_allclose(drawn_again.gradients[name].mean, estimate.mean, rtol=1e-5)


def test_a_cotangent_kernel_is_that_of_the_loss():
    """A loss on the last position alone: at width d its rows are ``⟨AᵀGA, Σ⟩`` of that kernel."""
    cotangent = np.zeros((4, 4))
    cotangent[3, 3] = 1
    model = kp.Transformer(kp.uniform(4), depth=2)
    found = simulate(model, KERNEL4, width=32, draws=300, key=0, gradients=True, cotangent=cotangent)
    # A = 11ᵀ/4, G = e₃e₃ᵀ: value in layer 2: ⟨AᵀGA, Σ_1⟩ with Σ_1 = 1/4 everywhere: 1/4.
    ratio, stderr = found.value.mean / 32**2 / 0.25, found.value.stderr / 32**2 / 0.25
    assert np.all(stderr < 0.06)
    assert np.all(np.abs(ratio - 1) < 4 * stderr)


def test_positions_add_their_kernel():
    positions = 0.5 * np.ones((4, 4))
    model = kp.Transformer(kp.identity(4), positions=positions)
    found = simulate(model, KERNEL4, width=32, draws=400, key=0, keep=0)
    z = (found.kernels.mean[0] - (KERNEL4 + positions)) / found.kernels.stderr[0]
    assert found.kernels.stderr.max() < 0.02
    assert np.abs(z).max() < 4


def test_token_ids_are_embedded():
    model = kp.Transformer(kp.identity(4))
    found = simulate(model, inputs=np.array([7, 3, 7, 2**31 - 1]), width=64, draws=100, key=0, keep=0)
    kernel, stderr = found.kernels.mean[0], found.kernels.stderr[0]
    equal = np.array([[1, 0, 1, 0], [0, 1, 0, 0], [1, 0, 1, 0], [0, 0, 0, 1]])
    assert np.all(np.abs(kernel - equal) < 4 * stderr)
    assert kernel[0, 2] == kernel[0, 0]


def test_a_given_example_is_taken_as_it_is():
    """Case 50: the kernel is divided by the width, and is T × T."""
    found = simulate(kp.Transformer(kp.identity(2)), inputs=np.ones((2, 4)), width=4, draws=4, key=0, keep="all")
    np.testing.assert_array_equal(found.kernels.mean[0], np.ones((2, 2)))
    assert found.kernels.mean.shape == (2, 2, 2)
    np.testing.assert_array_equal(found.kernels.stderr[0], 0)


def test_the_final_norm_is_in_the_last_depth_and_in_the_gradients():
    options = {"width": 8, "draws": 4, "key": 0, "keep": "all", "gradients": True, "dtype": "float64"}
    norms = [kp.Norm("pre", "rms", final=final) for final in (False, True)]
    off, on = (simulate(kp.Transformer(kp.identity(4), depth=2, norm=norm), KERNEL4, **options) for norm in norms)
    np.testing.assert_allclose(on.diagonal.mean[2], 1, rtol=1e-12)
    np.testing.assert_allclose(np.diagonal(on.kernels.mean[2]), 1, rtol=1e-12)
    np.testing.assert_allclose(on.diagonal.mean[1], off.diagonal.mean[1], rtol=1e-12)
    assert abs(on.value.mean[0] / off.value.mean[0] - 1) > 0.01


def test_products_keep_all_digits():
    """Case 59: x_k = 1 + 2⁻¹², n = 1024, x·x/n in float32."""
    x = np.full((1, 1024), 1 + 2.0**-12)
    found = simulate(kp.Transformer(kp.identity(1)), inputs=x, width=1024, draws=4, key=0, keep=0)
    assert abs(found.kernels.mean[0, 0, 0] - 1.00048834085464478) < 2e-7


def test_double_precision_on_request():
    dtypes = ("float32", "float64")
    single, double = (simulate(SMALL, KERNEL4, width=8, draws=4, key=0, dtype=dtype) for dtype in dtypes)
    assert (single.dtype, double.dtype) == ("float32", "float64")
    exact = np.abs(double.diagonal.mean[0] - 1).max()
    assert exact < 1e-14
    assert 1e-9 < np.abs(single.diagonal.mean[0] - 1).max() < 1e-5
    fast = simulate(SMALL, KERNEL4, width=8, draws=4, key=0, precision="fast")
    assert fast.precision == "fast"


def test_plain_matrices_are_noted():
    model = kp.Transformer(kp.espa(4, gammas=[0.1, 0.5], require_nonnegative=False))
    found = simulate(model, KERNEL4, width=8, draws=4, key=0, gradients=True)
    assert found.query is None
    assert "no softmax form" in found.notes[0]


def test_undefined_numbers_are_flagged():
    model = kp.Transformer(kp.dense([[0.0, 0.0], [0.5, 0.5]]))
    found = simulate(model, np.eye(2), width=4, draws=4, key=0)
    assert found.undefined.tolist() == [False, True]
    assert np.isnan(found.mean_correlation.mean[1])


def test_a_token_that_dies_in_some_draws_is_flagged():
    """A ReLU of one hidden unit kills a token in every second draw: the mean correlation has no value then."""
    model = kp.Transformer(kp.identity(2), mlp=kp.MLP("relu", expansion=0.5))
    found = simulate(model, np.eye(2), width=2, draws=16, key=0)
    assert np.all(found.diagonal.mean > 0)
    assert np.isnan(found.mean_correlation.mean[1])
    assert found.undefined.tolist() == [False, True]
    alone = simulate(kp.Transformer(kp.identity(1)), np.eye(1), width=2, draws=4, key=0)
    assert not alone.undefined.any()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kernel0": None}, "give exactly one of kernel0"),
        ({"inputs": np.ones((4, 8))}, "give exactly one of kernel0"),
        ({"kernel0": np.eye(3)}, "kernel0: 3 positions, but the attention has 4"),
        ({"kernel0": np.stack([np.eye(4)] * 2)}, r"kernel0: one kernel \(T, T\) is wanted, shape \(2, 4, 4\)"),
        ({"width": 3}, "width: 3 is below the 4 positions"),
        ({"draws": 1}, "draws: 1 is too small; it must be at least 2"),
        ({"precision": "low"}, "precision: 'low' is unknown; use 'highest' or 'fast'"),
        ({"dtype": "float16"}, "dtype: float16 is not supported"),
        ({"cotangent": np.eye(3)}, r"cotangent: shape \(3, 3\) does not fit 4 positions"),
        ({"keep": 5}, r"keep: depth 5 is outside 0…2"),
        ({"kernel0": None, "inputs": np.ones((4, 9))}, r"inputs: shape \(4, 9\) is not \(T, d\) = \(4, 8\)"),
        ({"kernel0": None, "inputs": np.array([1, 2, -3, 4])}, "inputs: position 2: token id -3 is outside"),
        ({"kernel0": None, "inputs": np.array([1, 2])}, "inputs: 2 token ids, but the attention has 4 positions"),
    ],
)
def test_bad_input_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        simulate(SMALL, **{"kernel0": KERNEL4, "width": 8, "draws": 4, "key": 0} | options)


@pytest.mark.parametrize(("kind", "row", "word"), [("layer", 2.0, "variance"), ("rms", 0.0, "norm")])
def test_an_example_that_a_norm_would_divide_by_zero_is_refused(kind, row, word):
    """Case 38: LayerNorm with ε = 0 and a constant token, named by its index."""
    example = np.random.default_rng(0).normal(size=(4, 8))
    example[2] = row
    model = kp.Transformer(kp.uniform(4), norm=kp.Norm("pre", kind))
    with pytest.raises(ValueError, match=f"inputs: position 2 has zero {word}, and a norm with epsilon=0"):
        simulate(model, inputs=example, width=8, draws=4, key=0)


def test_what_cannot_fit_in_memory_is_refused(monkeypatch):
    monkeypatch.setattr("kernelprop.memory.available_bytes", lambda: 10_000)
    with pytest.raises(ValueError, match=r"one draw needs .* KiB, and 9\.8 KiB a device are available"):
        simulate(kp.Transformer(kp.uniform(4), depth=2), np.eye(4), width=64, draws=4, key=0)
