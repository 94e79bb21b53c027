"""Prediction beside measurement, and the law that their difference follows in the width."""

import numpy as np
import pytest

import kernelprop as kp
from kernelprop import storage
from kernelprop.finite.comparison import compare
from kernelprop.finite.width_law import fit_width_law

MODEL = kp.Transformer(
    kp.espa(6, 3, gamma=0.3), mlp=kp.MLP("relu", 1), residual=kp.Residual((0.8, 0.6), (0.8, 0.6)), norm="pre"
)
KERNEL = 0.7 * np.eye(6) + 0.3


@pytest.fixture(scope="module")
def found():
    calls = []
    result = compare(
        MODEL,
        KERNEL,
        widths=(64, 16, 32),
        draws=100,
        key=1,
        gradients=True,
        keep="all",
        progress=lambda *a: calls.append(a),
    )
    assert calls[-1][:2] == (300, 300)
    assert [call[0] for call in calls] == sorted(call[0] for call in calls)
    return result


def test_the_remainder_has_no_limit(found):
    """Of some 200 entries none should be 4.5 standard errors off but by 1 in 700, were they independent.

    Participation ratios are left out: far from linear in the kernel, they differ by more than 1/d at width 16.
    """
    assert found.widths.tolist() == [16, 32, 64]
    for name in ("kernels", "diagonal", "mean_correlation", "rank_residual", "value", "output", "mlp_in", "mlp_out"):
        law = found.width_law(name)
        assert np.abs(law.limit_z()).max() < 4.5, name
        assert law.limit.mean.shape == found.predicted[name].shape


def test_a_wrong_formula_has_one(found):
    """A tenth more of the branch: the diagonal's limit is told from 0, where the true one's was not."""
    wrong = kp.Transformer(
        MODEL.attention, mlp=kp.MLP("relu", 1), residual=kp.Residual((0.8, 0.66), (0.8, 0.66)), norm="pre"
    )
    predicted = kp.propagate(wrong, KERNEL, keep="all").diagonal
    difference = found.measured["diagonal"] - predicted
    law = fit_width_law(found.widths.astype(float), difference, found.measured_stderr["diagonal"], 100)
    assert np.abs(law.limit_z()).max() > 6


def test_what_is_exact_in_every_draw_agrees_within_rounding():
    result = compare(kp.Transformer(kp.espa(6, 3)), KERNEL, widths=(8,), draws=4, weights="orthogonal", keep="all")
    for name in ("kernels", "diagonal", "mean_correlation"):
        assert np.all(np.isfinite(result.z(name)))
        assert np.abs(result.z(name)).max() < 4
    assert not {"limit", "misfit"} & set(result.table()[0])
    with pytest.raises(ValueError, match="two widths or more"):
        result.width_law("diagonal")


def test_an_interrupted_comparison_keeps_the_widths_that_are_done(monkeypatch):
    """Ctrl-C at the third of four draws of width 16: it has two, width 8 all, width 32 none."""
    monkeypatch.setattr("kernelprop.finite.plan.MOST_DRAWS", 1)

    def progress(done, total, seconds):
        if done == 6:
            raise KeyboardInterrupt

    options = {"widths": (8, 16, 32), "draws": 4, "weights": "orthogonal"}
    result = compare(kp.Transformer(kp.espa(6, 3)), KERNEL, progress=progress, **options)
    assert (result.widths.tolist(), result.draws.tolist()) == ([8, 16], [4, 2])
    assert result.notes[-2:] == ("interrupted: no draws at width 32", "width 16: interrupted: 2 of 4 draws")
    with pytest.raises(KeyboardInterrupt):
        compare(kp.Transformer(kp.espa(6, 3)), KERNEL, progress=lambda *a: progress(6, 12, 0), **options)


def test_few_heads_beside_a_prediction_of_infinitely_many_are_told():
    model = kp.Transformer(kp.random_softmax(2, draws=16))
    result = compare(model, np.eye(2), widths=(4,), draws=2, gradients=True)
    assert result.notes[-1].startswith("predicted for infinitely many heads, sampled with 1 head: ")
    assert result.predicted_stderr["diagonal"][1].max() > 0
    assert result.predicted_stderr["value"][0] > 0


def test_keys_that_never_move_are_no_disagreement(found):
    assert np.all(found.predicted["key"] == 0)
    assert np.all(found.z("key") == 0)


def test_the_table_names_the_worst_entry(found):
    rows = found.table()
    kernels = [row for row in rows if row["name"].startswith("kernels[")]
    assert [row["depth"] for row in kernels] == [0, 1, 2, 3]
    values = [row for row in rows if row["name"] == "value"]
    assert [row["layer"] for row in values] == [1, 2, 3]
    assert values[0]["difference"] == pytest.approx(values[0]["measured"] - values[0]["predicted"])
    assert values[0]["z"] == pytest.approx(values[0]["difference"] / values[0]["stderr"])
    assert {"limit", "limit_stderr", "slope", "misfit"} <= set(values[0])
    assert values[1]["misfit"] == found.width_law("value").misfit[1]
    assert (found.dtype, found.query_exact.tolist()) == ("float32", [False] * 3)


def test_it_is_saved_and_loaded(found, tmp_path):
    found.save(tmp_path / "comparison.npz")
    assert storage.load(tmp_path / "comparison.npz") == found


def test_the_fit_recovers_a_law_and_its_errors():
    generator = np.random.default_rng(0)
    widths, errors = np.array([100.0, 200.0, 400.0]), np.array([0.03, 0.02, 0.01])
    noise = generator.normal(size=(3, 20_000)) * errors[:, None]
    law = fit_width_law(widths, 0.5 + 7 / widths[:, None] + noise, np.broadcast_to(errors[:, None], noise.shape), 10)
    for estimate, right in ((law.limit, 0.5), (law.slope, 7.0)):
        z = (estimate.mean - right) / estimate.stderr
        assert abs(z.mean()) < 4 / np.sqrt(20_000)
        assert abs(z.std() - 1) < 4 / np.sqrt(2 * 20_000)
    assert abs(law.misfit.mean() - 1) < 4 * np.sqrt(2 / 20_000)
