"""``kernelprop train``: what it prints and writes, how it goes on, what it refuses."""

import numpy as np
import pytest

from kernelprop.results import Estimate
from kernelprop.storage import load
from kernelprop.training.recipe import Recipe
from kernelprop.training.result import TrainingRun

NETWORK = """
[attention]
kind = "espa"
length = 6
depth = 2
gamma = 0.5
[mlp]
activation = "gelu"
expansion = 2
"""
SMALL = "--width 8 --heads 2 --steps 6 --batch 2 --points 2"


@pytest.fixture
def description(tmp_path):
    (tmp_path / "network.toml").write_text(NETWORK)
    return tmp_path


@pytest.mark.slow
def test_it_trains_writes_and_goes_on(command, description):
    ran = command(f"train network.toml {SMALL} --vocabulary 4 --trainable bias,rescale --checkpoint run.npz --out out")
    assert ran.code == 0
    assert "final validation loss" in ran.out
    assert "order-2 Markov source of 4 symbols; unigram" in ran.out
    assert "step 6 of 6: loss" in ran.err
    assert {path.name for path in (description / "out").iterdir()} == {
        "training.npz",
        "training.csv",
        "training.json",
    }
    found = load(description / "out" / "training.npz")
    assert found.loss[0] == pytest.approx(np.log(4), rel=1e-6)
    assert set(found.scales) == {"bias", "rescale"}
    header, *lines = (description / "out" / "training.csv").read_text().splitlines()
    assert header.startswith("done,validation_loss,validation_stderr,token_cosine_first,token_cosine_last,gradient_")
    assert [line.split(",")[0] for line in lines] == ["0", "6"]
    assert command("show out/training.npz").out.splitlines()[:-1] == ran.out.splitlines()[:-2]
    again = command(
        f"train network.toml {SMALL} --vocabulary 4 --trainable bias,rescale --checkpoint run.npz --out out --json"
    )
    assert again.table["final"]["loss"] == float(found.final.mean)
    other = command(f"train network.toml {SMALL} --vocabulary 5 --trainable bias,rescale --checkpoint run.npz")
    assert (other.code, other.out) == (2, "")
    assert other.err.startswith("error: checkpoint: run.npz was made with another data; remove it to start anew")


@pytest.fixture
def found():
    """A run as it is saved, of made-up numbers."""

    def estimate(mean, error, count):
        return Estimate(np.array(mean), np.array(error), count)

    return TrainingRun(
        loss=np.array([2.0, 1.5]),
        done=np.array([0, 2]),
        validation=estimate([2.0, 1.25], [0.0, 0.125], 4),
        final=estimate(1.375, 0.0625, 32),
        token_cosine=np.array([[0.0, 0.1], [0.0, 0.2]]),
        kernels=np.ones((2, 2, 2)),
        gradient_norms={"value": np.ones((2, 1))},
        scales={},
        levels={"unigram": 1.75},
        recipe=Recipe(steps=2, warmup=0),
        data="made up",
        sizes={"width": 8, "trained": 1234},
        seed=0,
        dtype="float32",
        seconds=3.0,
    )


def test_show_prints_a_saved_run_as_train_does(command, found, tmp_path):
    found.save(tmp_path / "training.npz")
    ran = command("show training.npz")
    assert ran.code == 0
    assert "1.2500 +- 0.1250" in ran.out
    assert "final validation loss 1.3750 +- 0.0625 over 32 batches; 1,234 trained numbers; 3 s" in ran.out
    assert "over the first 4 of these batches, the same ones in every row" in ran.out
    assert "written to" not in ran.out
    assert command("show training.npz --json").table == found.summary()
    assert command("show training.npz --show 0").code == 2


def test_ctrl_c_ends_with_130(command, description, monkeypatch):
    def interrupted(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("kernelprop.training.run.train", interrupted)
    ran = command(f"train network.toml {SMALL} --out out --quiet")
    assert (ran.code, ran.out, ran.err) == (130, "", "interrupted: by Ctrl-C\n")
    assert not (description / "out").exists()


@pytest.mark.slow
def test_a_loss_that_is_not_finite_ends_in_one_line(command, description):
    ran = command(f"train network.toml {SMALL} --quiet --optimiser sgd --warmup 0 --clip 0 --learning-rate 1e15")
    assert ran.code == 2
    assert ran.err.startswith("error: training: the loss of step ")
    assert ran.err.count("\n") == 1
    assert not (description / "kernelprop-output").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("missing.toml", "missing.toml: no such file"),
        ("network.toml --data book.txt", "--data book.txt: no such file, and none of markov, copy, reversal, documen"),
        ("network.toml --lag 2", "--lag: has no meaning for --data markov; it belongs to copy"),
        ("network.toml --data copy --lag 6", "copy: a lag of 6 does not fit 6 positions"),
        ("network.toml --data short.txt", "short.txt: its validation part has 2 tokens; 6 positions want 7 or more"),
        ("network.toml --vocabulary 1", "vocabulary: 1 is too small; it must be at least 2"),
        ("network.toml --width 7 --heads 2", "width: 7 does not divide into 2 heads"),
        ("network.toml --steps 5 --warmup 5", "recipe: warmup of 5 steps does not fit 5 steps"),
        ("network.toml --trainable bias,all", "trainable: 'all' is unknown; use bias, rescale, mix, skip, branch"),
        ("network.toml --checkpoint no/run.npz", "--checkpoint no/run.npz: the folder no does not exist"),
        ("network.toml --checkpoint foreign.npz", "checkpoint: foreign.npz is no checkpoint of a training run"),
    ],
)
def test_bad_input_ends_in_one_line_and_writes_nothing(command, description, arguments, message):
    (description / "short.txt").write_text("abcdefghijklmnopqrst")
    if "foreign" in arguments:
        from kernelprop.storage import save

        save({"kind": "something else"}, description / "foreign.npz")
    before = sorted(path.name for path in description.iterdir())
    ran = command(f"train {arguments} --quiet")
    assert ran.code == 2
    assert ran.err.startswith(f"error: {message}")
    assert ran.err.count("\n") == 1
    assert sorted(path.name for path in description.iterdir()) == before
