"""``kernelprop simulate`` and ``kernelprop compare``: sampled networks without a line of Python."""

import csv
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest

import kernelprop as kp
from kernelprop.cli.draws import time_left
from kernelprop.cli.sampling import sampling
from kernelprop.cli.voice import Voice
from kernelprop.descriptions import load_description
from kernelprop.finite.limits import largest_limit
from tests.cli.test_gradients import LINEAR
from tests.finite.test_limits import made, moved


@pytest.fixture
def network(tmp_path):
    (tmp_path / "net.toml").write_text(LINEAR)
    return load_description(tmp_path / "net.toml")


@pytest.mark.slow
def test_simulate_writes_and_prints_what_the_library_measures(command, network, tmp_path):
    expected = kp.simulate(network.model, network.kernel0, width=8, draws=6, key=3, gradients=True)
    ran = command("simulate net.toml --width 8 --draws 6 --seed 3 --gradients --out out")
    assert ran.code == 0
    assert kp.load(tmp_path / "out" / "ensemble.npz") == expected
    rows = list(csv.DictReader((tmp_path / "out" / "ensemble.csv").read_text().splitlines()))
    assert [float(row["rank_residual"]) for row in rows] == expected.rank_residual.mean.tolist()
    rows = list(csv.DictReader((tmp_path / "out" / "ensemble-gradients.csv").read_text().splitlines()))
    assert [float(row["value_stderr"]) for row in rows] == expected.value.stderr.tolist()
    assert f"{expected.value.mean[0]:.6g}" in ran.out
    assert "6 networks of width 8, 1 heads of width 8, float32" in ran.out
    assert (tmp_path / "out" / "ensemble.png").exists()
    again = command("show out/ensemble.npz --json --no-plots")
    assert again.table["rows"][2]["mean_correlation"] == expected.mean_correlation.mean[2]


@pytest.mark.slow
def test_orthogonal_attention_alone_has_no_spread(command, network, tmp_path):
    command("simulate net.toml --width 8 --draws 3 --weights orthogonal --dtype float64 --json --no-plots --out out")
    found = kp.load(tmp_path / "out" / "ensemble.npz")
    expected = kp.propagate(network.model, network.kernel0)
    np.testing.assert_allclose(found.kernels.mean[-1], expected.kernels[-1], rtol=1e-12)
    assert found.spread("kernels").max() < 1e-13


@pytest.mark.slow
def test_a_checkpoint_is_gone_on_with(command, network, tmp_path):
    command("simulate net.toml --width 8 --draws 4 --checkpoint draws.npz --quiet --no-plots --out part")
    command("simulate net.toml --width 8 --draws 6 --checkpoint draws.npz --quiet --no-plots --out whole")
    command("simulate net.toml --width 8 --draws 6 --quiet --no-plots --out at-once")
    whole, at_once = (kp.load(tmp_path / name / "ensemble.npz") for name in ("whole", "at-once"))
    assert whole.draws == 6
    np.testing.assert_allclose(whole.kernels.mean, at_once.kernels.mean, rtol=1e-6)
    ran = command("simulate net.toml --width 16 --draws 8 --checkpoint draws.npz --no-plots --out other")
    assert ran.code == 2
    assert "draws.npz" in ran.err


@pytest.mark.slow
def test_compare_puts_prediction_and_measurement_side_by_side(command, network, tmp_path):
    ran = command("compare net.toml --widths 8,16 --draws 6 --gradients --out out")
    assert ran.code == 0
    found = kp.load(tmp_path / "out" / "comparison.npz")
    assert found.widths.tolist() == [8, 16]
    predicted = kp.propagate(network.model, network.kernel0)
    np.testing.assert_array_equal(found.predicted["mean_correlation"], predicted.mean_correlation)
    rows = list(csv.DictReader((tmp_path / "out" / "comparison.csv").read_text().splitlines()))
    row = next(row for row in rows if (row["name"], row["layer"]) == ("value", "2"))
    assert float(row["z"]) == pytest.approx(
        (float(row["measured"]) - float(row["predicted"])) / float(row["stderr"]), rel=1e-12
    )
    assert f"{predicted.mean_correlation[2]:.6g}" in ran.out
    assert (tmp_path / "out" / "comparison.png").exists()
    again = command("show out/comparison.npz --json --no-plots")
    assert again.table["widths"] == [8, 16]


@pytest.fixture
def ctrl_c(monkeypatch):
    """One draw a chunk, and an interrupt as the second one of a width ends."""
    from kernelprop.cli import draws

    monkeypatch.setattr("kernelprop.finite.plan.MOST_DRAWS", 1)

    @contextmanager
    def interrupted(message, *, quiet=False):
        def report(done, total, seconds):
            if done % 4 == 2:
                raise KeyboardInterrupt

        yield report

    monkeypatch.setattr(draws, "draws_done", interrupted)


@pytest.mark.slow
def test_ctrl_c_keeps_the_draws_and_the_widths_that_are_done(command, network, ctrl_c, tmp_path):
    ran = command("simulate net.toml --width 8 --draws 4 --no-plots --out one")
    assert ran.code == 130
    assert ran.err.endswith("interrupted: by Ctrl-C\n")
    assert "interrupted: 2 of 4 draws" in ran.out
    assert kp.load(tmp_path / "one" / "ensemble.npz").draws == 2
    ran = command("compare net.toml --widths 8,16 --draws 4 --heads 2 --head-width 8 --no-plots --out two")
    assert ran.code == 130
    assert ran.err.endswith("interrupted: by Ctrl-C\n")
    assert "interrupted: no draws at width 16" in ran.out
    assert kp.load(tmp_path / "two" / "comparison.npz").draws.tolist() == [2]


def test_closing_lines_judge_what_is_linear_in_the_kernel_and_say_what_is_left_out(command, tmp_path):
    """Made-up numbers: a participation ratio that is far off says nothing, a diagonal that is off does."""
    sound = made()
    moved(sound, "participation_ratio", (2,), 1.0).save(tmp_path / "sound.npz")
    moved(sound, "diagonal", (2, 5), 0.01).save(tmp_path / "wrong.npz")
    told, table = command("show sound.npz --no-plots"), command("show sound.npz --no-plots --json").table
    assert told.code == 0
    value = f"{largest_limit(sound).value:.2f}"
    assert f"limits of kernel entries, diagonals and gradient norms: the largest of 66 is {value} of its" in told.out
    assert "left out of it: mean correlation, participation ratio; an average over networks of what isn't" in told.out
    assert "1/d law of the same numbers: the largest misfit (chi-squared per degree of freedom, about 1) is" in told.out
    assert "misfit" in told.out.splitlines()[1]
    assert (table["dtype"], table["largest_limit"]["among"]) == ("float32", 66)
    assert table["largest_limit"]["value"] < table["largest_limit"]["chance"]
    assert table["largest_misfit"]["value"] < table["largest_misfit"]["chance"]
    assert table["left_out_of_these"] == ["mean_correlation", "participation_ratio"]
    assert all("misfit" in row for row in table["rows"])
    limit = command("show wrong.npz --no-plots --json").table["largest_limit"]
    assert limit["value"] > limit["chance"]
    assert limit["place"] == "diagonal[5] at depth 2"


def test_a_zero_is_told_from_rounding_of_the_type_that_was_sampled(command, tmp_path):
    """1e-9 is rounding in float32 and a number in float64."""
    sound = made()
    measured = sound.measured | {"mean_correlation": np.full((4, 4), 1e-9)}
    replace(sound, measured=measured).save(tmp_path / "single.npz")
    replace(sound, measured=measured, dtype="float64").save(tmp_path / "double.npz")
    assert "1e-09" not in command("show single.npz --no-plots").out
    assert "1e-09" in command("show double.npz --no-plots").out


def test_off_a_terminal_compiling_is_told_before_the_first_draw(capsys, monkeypatch):
    import time

    monkeypatch.setattr("kernelprop.cli.progress.PATIENCE", 0.01)
    with sampling("width 8", Voice()) as report:
        time.sleep(0.1)
        report(1, 2, 0.1)
    assert capsys.readouterr().err == "width 8: compiling and drawing ...\n"
    with sampling("width 8", Voice(quiet=True)) as report:
        time.sleep(0.1)
        assert report is None
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("simulate missing.toml", "missing.toml"),
        ("simulate net.toml --weights cauchy", "cauchy"),
        ("simulate net.toml --draws 1", "draws"),
        ("simulate net.toml --width 2", "2"),
        ("simulate net.toml --seed -1", "-1"),
        ("simulate net.toml --precision low", "low"),
        ("compare net.toml --widths 8,b", "--widths"),
        ("compare net.toml --widths 0", "widths"),
        ("compare net.toml --heads 3", "heads"),
        ("simulate net.toml --checkpoint absent/draws.npz", "absent"),
    ],
)
def test_bad_input_is_one_line(command, network, tmp_path, options, message):
    ran = command(f"{options} --out out")
    assert ran.code == 2
    assert message in ran.err
    assert ran.err.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_the_time_left_is_that_of_the_pace_so_far():
    assert time_left(1, 4, 600.0) == "1 of 4 draws, 30 min left"
    assert time_left(5, 10, 5.0) == "5 of 10 draws, 5 s left"
