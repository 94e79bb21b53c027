"""``kernelprop evolve``: the main job on real and on named input, as a user runs it."""

import csv

import numpy as np
import pytest

import kernelprop as kp
from tests.cli.conftest import strict_json

THEORY = [0.3787322, 0.7711402, 0.9484374, 0.9917793, 0.9975848, 0.9998545]
MEASURED = [0.0848, 0.1608, 0.1896, 0.2166, 0.2324, 0.2909, 0.3958]


def test_the_shipped_example_collapses_while_the_real_network_does_not(command, tmp_path):
    ran = command("evolve --example minilm")
    assert ran.code == 0
    lines = [line.split() for line in ran.out.splitlines() if line[:7].strip().isdigit()]
    assert [line[1] for line in lines[1:]] == [f"{value:.7f}" for value in THEORY]
    np.testing.assert_allclose([float(line[2]) for line in lines], MEASURED, atol=5e-5)
    assert "attention alone collapses it: mean correlation 0.9998545 after layer 6" in ran.out
    assert "rank residual: sqrt(tr(C S C) / tr S)" in ran.out
    written = sorted(path.name for path in (tmp_path / "kernelprop-output").iterdir())
    numbers = ["evolution.csv", "evolution.json", "evolution.npz", "kernels.png", "measured.csv", "measured.png"]
    assert written == [*numbers, "rank-collapse.png"]
    with (tmp_path / "kernelprop-output" / "measured.csv").open() as file:
        rows = list(csv.DictReader(file))
    np.testing.assert_allclose([float(row["mean_cosine"]) for row in rows], MEASURED, atol=5e-5)


def test_json_is_strict_and_holds_theory_beside_measurement(command):
    ran = command("evolve --example minilm --json --no-plots")
    rows = ran.table["rows"]
    np.testing.assert_allclose([row["mean_correlation"] for row in rows[1:]], THEORY, atol=5e-8)
    np.testing.assert_allclose([row["measured_mean_cosine"] for row in rows], MEASURED, atol=5e-5)
    assert ran.table["verdict"].startswith("attention alone collapses it")


def test_every_file_holds_the_same_evolution(command, tmp_path):
    assert command("evolve --example minilm --no-plots --quiet --out deep/er").code == 0
    folder = tmp_path / "deep" / "er"
    evolution = kp.load(folder / "evolution.npz")
    example = kp.examples.minilm()
    expected = kp.propagate(kp.Transformer(example.attention), example.kernels[0])
    np.testing.assert_array_equal(evolution.kernels, expected.kernels)
    assert evolution.description is not None
    with (folder / "evolution.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [float(row["mean_correlation"]) for row in rows] == evolution.mean_correlation.tolist()
    content = strict_json((folder / "evolution.json").read_text())
    assert content["observables"]["rank_residual"] == evolution.rank_residual.tolist()


def test_quiet_prints_nothing(command, matrices):
    ran = command("evolve --attention A.npy --no-plots --quiet")
    assert (ran.code, ran.out) == (0, "")


@pytest.fixture
def asked(command, monkeypatch):
    """Return the network and the kernel that arguments ask for, without propagating (every network compiles)."""
    inputs = []

    def stop(model, kernel, *rest):
        inputs.extend((model, kernel))
        raise ValueError("stop")

    def ask(arguments):
        monkeypatch.setattr("kernelprop.cli.run._propagate", stop)
        assert command(arguments).err == "error: stop\n"
        return inputs

    return ask


def test_weights_of_skips_and_branches_are_the_residuals(asked):
    model, kernel = asked("evolve --example minilm --skip 1 --branch 0.5")
    assert [np.unique(weight).tolist() for weight in model.residual.attention] == [[1.0], [0.5]]
    np.testing.assert_array_equal(kernel, kp.examples.minilm().kernels[0])


def test_a_result_of_an_overridden_example_is_not_held_against_the_real_network(command, matrices):
    """Where another network, or another kernel, stands in for the example's."""
    rows = command("evolve --example minilm --attention A.npy --kernel K.npy --json --no-plots").table["rows"]
    assert "measured_mean_cosine" not in rows[0]


NAMED = {
    "espa --length 6 --depth 4 --gamma 0.01": lambda: kp.espa(6, 4, gamma=0.01),
    "identity --length 6 --depth 4": lambda: kp.identity(6),
    "uniform --length 6 --depth 4": lambda: kp.uniform(6),
    "espa --length 6 --depth 4": lambda: kp.espa(6, 4),
    "espa --length 6 --depth 4 --gamma0 2": lambda: kp.espa(6, 4, gamma0=2.0),
    "uspa --length 6 --depth 4 --rho 0.6 --rho0 0.1 --no-causal": lambda: kp.uspa(6, 4, 0.6, 0.1, causal=False),
    "uniform --length 6 --depth 4 --causal": lambda: kp.uniform(6, causal=True),
    "uniform --length 6 --depth 4 --alpha 0.9 --beta 0.1": lambda: kp.mix(kp.uniform(6), 0.9, 0.1),
}


@pytest.mark.parametrize("arguments", NAMED)
def test_named_attention_is_the_librarys(asked, arguments):
    model, kernel = asked(f"evolve --attention {arguments}")
    assert type(model.attention) is type(NAMED[arguments]())
    np.testing.assert_array_equal(model.attention.as_matrix(), NAMED[arguments]().as_matrix())
    assert (model.depth, model.residual) == (4, None)
    np.testing.assert_array_equal(kernel, np.eye(6))


KERNELS = {
    "--kernel identity": np.eye(4),
    "--kernel equicorrelated --correlation 0.3": 0.7 * np.eye(4) + 0.3,
    "--kernel exponential --decay 0.5": np.exp(-0.5 * np.abs(np.arange(4)[:, None] - np.arange(4))),
    "--tokens a,b,a,c": [[1, 0, 1, 0], [0, 1, 0, 0], [1, 0, 1, 0], [0, 0, 0, 1]],
    "--tokens ids.npy --correlation 0.5": [[1, 0.5, 1, 0.5], [0.5, 1, 0.5, 0.5], [1, 0.5, 1, 0.5], [0.5, 0.5, 0.5, 1]],
    "--inputs X.npy": np.diag([1.0, 4, 9, 16]),
    "--kernel K.npy": np.diag([1.0, 2, 3, 4]),
    "--kernel K.npz": np.diag([1.0, 2, 3, 4]),
    "--kernel several.npz:b": np.diag([1.0, 2, 3, 4]),
    "--kernel several.npz:stack[1]": np.diag([1.0, 2, 3, 4]),
    "--kernel stack.npy:[1]": np.diag([1.0, 2, 3, 4]),
    "--kernel one.safetensors": np.diag([1.0, 2, 3, 4]),
    "--kernel several.safetensors:layer.0/b": np.diag([1.0, 2, 3, 4]),
}


@pytest.fixture
def kernel_files(tmp_path):
    from safetensors.numpy import save_file

    kernel = np.diag([1.0, 2, 3, 4])
    stack = np.stack([np.eye(4), kernel])
    np.save(tmp_path / "ids.npy", np.array([7, 1, 7, 2]))
    np.save(tmp_path / "X.npy", 2 * np.diag(np.arange(1.0, 5)))
    np.save(tmp_path / "K.npy", kernel)
    np.save(tmp_path / "stack.npy", stack)
    np.savez(tmp_path / "K.npz", kernel)
    np.savez(tmp_path / "several.npz", a=np.eye(4), b=kernel, stack=stack)
    save_file({"k": kernel}, tmp_path / "one.safetensors")
    save_file({"layer.0/a": np.eye(4), "layer.0/b": kernel}, tmp_path / "several.safetensors")


@pytest.mark.usefixtures("kernel_files")
@pytest.mark.parametrize("arguments", KERNELS)
def test_kernels_come_from_files_tokens_inputs_and_names(asked, arguments):
    _, kernel = asked(f"evolve --attention identity --length 4 {arguments}")
    np.testing.assert_allclose(kernel, KERNELS[arguments], atol=1e-14)


@pytest.mark.usefixtures("kernel_files")
def test_the_length_of_named_attention_is_the_kernels(asked):
    model, _ = asked("evolve --attention uniform --kernel K.npy")
    assert model.length == 4


@pytest.mark.usefixtures("kernel_files")
def test_a_batch_of_kernels_has_a_row_for_each(command):
    rows = command("evolve --attention uniform --kernel stack.npy --json --no-plots").table["rows"]
    assert [(row["batch"], row["depth"]) for row in rows] == [("0", 0), ("0", 1), ("1", 0), ("1", 1)]
    ran = command("evolve --attention uniform --kernel stack.npy --no-plots")
    assert "attention alone leaves 2 of 2 kernels collapsed after layer 1" in ran.out


def test_attention_of_one_layer_repeats_and_heads_average(command, tmp_path):
    """Case 23: heads of values drawn independently add their kernels, not their matrices."""
    np.save(tmp_path / "heads.npy", np.stack([np.eye(2), np.full((2, 2), 0.5)])[None])
    assert command("evolve --attention heads.npy --no-plots --quiet").code == 0
    last = kp.load(tmp_path / "kernelprop-output" / "evolution.npz").kernel(-1)
    np.testing.assert_allclose(last, [[0.75, 0.25], [0.25, 0.75]], atol=1e-15)


def test_all_observables_add_ranks_and_a_spectrum(command, matrices):
    ran = command("evolve --attention A.npy --observables all --depth 2")
    assert ran.code == 0
    for words in ("effective rank", "stable rank", "eigenvalue gap", "mean attention entropy 1.099 nats"):
        assert words in ran.out
    assert "effective rank: exp(entropy of the eigenvalues" in ran.out
    assert (matrices / "kernelprop-output" / "spectrum.png").stat().st_size > 5000


def test_a_long_run_prints_a_readable_selection(command):
    ran = command("evolve --attention identity --length 3 --depth 1000 --no-plots")
    depths = [line.split()[0] for line in ran.out.splitlines() if line[:7].strip().isdigit()]
    assert depths == ["0", "1", "2", "5", "10", "20", "50", "100", "200", "500", "1000"]


def test_chosen_depths_are_printed(command):
    ran = command("evolve --attention identity --length 3 --depth 50 --show 0,7 --no-plots --keep 0,7,50")
    depths = [line.split()[0] for line in ran.out.splitlines() if line[:7].strip().isdigit()]
    assert depths == ["0", "7"]


def test_what_is_undefined_or_below_rounding_is_said(command, tmp_path):
    """Cases 52 and 65: no healthy-looking number for a zero kernel, no failing picture of zeros."""
    np.save(tmp_path / "zero.npy", np.zeros((3, 3)))
    ran = command("evolve --attention uniform --kernel zero.npy --depth 2")
    assert ran.code == 0
    assert "undefined" in ran.out
    assert "without a signal" in ran.out
    ran = command("evolve --attention uniform --length 3 --depth 2")
    assert ran.code == 0
    assert "* a rank residual below what float64 can tell from 0" in ran.out
    assert "warning" not in ran.err


def test_float32_is_computed_on_request(command, matrices):
    assert command("evolve --attention A.npy --kernel K.npy --dtype float32 --no-plots --quiet").code == 0
    assert kp.load(matrices / "kernelprop-output" / "evolution.npz").kernels.dtype == np.float32


def test_an_earlier_runs_pictures_do_not_stay_beside_new_numbers(command, matrices):
    folder = matrices / "kernelprop-output"
    command("evolve --attention A.npy --observables all --quiet")
    (folder / "mine.txt").write_text("keep")
    assert (folder / "spectrum.png").exists()
    command("evolve --attention A.npy --no-plots --quiet")
    names = sorted(path.name for path in folder.iterdir())
    assert names == ["evolution.csv", "evolution.json", "evolution.npz", "mine.txt"]


def test_a_picture_that_fails_does_not_cost_the_numbers(command, matrices, monkeypatch):
    """Case 66: nothing aborts because of a figure."""

    def fail(*args, **kwargs):
        raise RuntimeError("no\nink")

    monkeypatch.setattr("kernelprop.plotting.rank_collapse", fail)
    ran = command("evolve --attention A.npy --quiet")
    assert ran.code == 0
    assert "warning: rank-collapse.png was not drawn: no ink" in ran.err
    assert (matrices / "kernelprop-output" / "kernels.png").exists()
    assert (matrices / "kernelprop-output" / "evolution.npz").exists()
