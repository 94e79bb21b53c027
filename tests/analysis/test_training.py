"""The training studies: a run is made, kept and gone on with; tables and pictures read what was kept."""

import numpy as np
import pytest

from analysis.records import write_record
from analysis.training import outcomes, running
from analysis.training.arms import ARMS
from analysis.training.estimate import estimate, needed
from analysis.training.keeping import final_loss, has, read
from analysis.training.prediction import predict
from analysis.training.studies import CLAIMED, DEPTH, STEPS, STUDIES, Run, Study, sweep
from figures import training_studies as pictures
from kernelprop.training import markov
from kernelprop.training.loop import Diverged

TINY = Run("pre_ln_learned", depth=2, steps=6, rate=1e-3, seed=0)


def test_a_run_is_resumed_and_kept(tmp_path, monkeypatch):
    records, checkpoints = tmp_path / "records", tmp_path / "checkpoints"

    def interrupted(now):
        if now.done == 4:
            raise KeyboardInterrupt

    monkeypatch.setattr(running, "_tell", lambda run: interrupted)
    with pytest.raises(KeyboardInterrupt):
        running.perform(TINY, records, checkpoints)
    assert not has(TINY, records)
    seen = []
    monkeypatch.setattr(running, "_tell", lambda run: lambda now: seen.append(now.done))
    running.perform(TINY, records, checkpoints)
    assert seen == [4, 5, 6]
    assert not list(checkpoints.iterdir())
    record = read(TINY, records)
    assert record.words["levels"]["unigram"] == markov(seed=7).entropies()[0]
    assert record.words["final"]["loss"] == final_loss(TINY, records)
    assert record.arrays["token_cosine"].shape[1] == 3
    assert (record.arrays["scale_mlp_beta"][0] == 0).all()
    assert (record.arrays["scale_mlp_beta"][-1] != 0).all()
    running.perform(TINY, records, checkpoints)
    assert seen == [4, 5, 6]


def test_a_run_whose_loss_is_not_finite_is_kept_as_such(tmp_path, monkeypatch):
    def diverging(*parts, checkpoint, **options):
        raise Diverged(f"the loss of step 3 is nan; {checkpoint} keeps the state", 3, 1)

    monkeypatch.setattr(running, "train", diverging)
    running.perform(TINY, tmp_path / "records", tmp_path / "checkpoints")
    assert final_loss(TINY, tmp_path / "records") == np.inf
    reason = read(TINY, tmp_path / "records").words["diverged"]
    assert reason == {"step": 3, "reason": f"the loss of step 3 is nan; {TINY.name}.npz keeps the state"}


def test_the_studies_are_those_that_were_asked_for():
    assert sorted(STUDIES) == list("abcdef")
    for study in STUDIES.values():
        assert all(len(ARMS[arm].rates) >= 3 for arm in study.arms())
    of_a = STUDIES["a"].comparisons
    assert {one.arm for one in of_a if one.depth == 36} == {"vanilla_relu", "espa", "pre_ln"}
    assert all(one.seeds == CLAIMED for one in of_a if one.depth == DEPTH)
    assert {one.steps for one in STUDIES["d"].comparisons} == {5 * STEPS}
    assert sum(one.minutes for one in estimate(tuple(STUDIES.values())).values()) < 150


def write(records, run, loss):
    done = np.linspace(0, run.steps, 11).round().astype(int)
    words = {"run": run._asdict(), "levels": {"unigram": 2.74, "bigram": 2.47, "conditional": 1.18, "best": 1.22}}
    words["final"] = {"loss": loss, "stderr": 0.01, "batches": 32}
    arrays = {
        "done": done,
        "validation": np.linspace(2.77, loss, 11),
        "token_cosine": np.linspace(0.1, 0.5, run.depth + 1) * np.ones((11, 1)),
    }
    write_record(run.name, words, arrays, 1.0, records)


@pytest.fixture
def records(tmp_path):
    """Two arms of study (a) as if they had been made, the middle rate the best."""
    folder = tmp_path / "records"
    folder.mkdir()
    for arm, loss in (("espa", 2.0), ("skipinit", 2.4)):
        for run, extra in zip(sweep(arm), (0.2, 0.0, 0.1), strict=True):
            write(folder, run, 2.5 + extra)
        for seed, run in enumerate(Run(arm, DEPTH, STEPS, ARMS[arm].rates[1], seed) for seed in range(3)):
            write(folder, run, loss + 0.01 * seed)
    return folder


def test_tables_and_claims_read_the_best_rate(records):
    found = {row.comparison.arm: row for row in outcomes.rows(STUDIES["a"], records)}
    assert set(found) == {"espa", "skipinit"}
    assert found["espa"].rate == ARMS["espa"].rates[1]
    assert found["espa"].loss == pytest.approx(2.01)
    assert found["espa"].stderr == pytest.approx(0.01 / np.sqrt(3))
    verdicts = dict(outcomes.decided(records))
    assert verdicts["E-SPA is better than Value-SkipInit"] == "replicates (+0.400 ± 0.008)"
    assert verdicts["E-SPA trains: below the bigram entropy"] == "replicates (+0.460 ± 0.006)"
    assert verdicts["Pre-LN is better than E-SPA"] == "not run"
    assert "| a | E-SPA | 24 | 300 | 0.0005 | 2.010 ± 0.006 | 3 |" in outcomes.table(records)
    for seed in range(3):
        write(records, Run("skipinit", DEPTH, STEPS, ARMS["skipinit"].rates[1], seed), 2.0 + 0.01 * seed)
    verdicts = dict(outcomes.decided(records))
    assert verdicts["E-SPA is better than Value-SkipInit"].startswith("too close to tell (+0.000")
    every = needed(Study("x", "", (STUDIES["a"].comparisons[3],)), records)
    assert sum(has(run, records) for run in every.values()) == len(every) == 6


def test_pictures_are_drawn_from_records(records, tmp_path):
    files = pictures.main(records, tmp_path)
    assert {file.name for file in files if file.suffix == ".png"} == {
        "training_prediction.png",
        "training_curves.png",
        "training_cosines.png",
    }
    assert all(file.stat().st_size > 5_000 for file in files)
    with pytest.raises(ValueError, match=r"no arm is finished; python -m analysis.training makes them"):
        pictures.main(tmp_path / "none", tmp_path)


def test_predictions_tell_what_collapses():
    """Where values skip everything, gradients are alike in all layers and the MLPs alone bend the kernel.

    TAT takes 0 to 0.5, and what is above 0 further; E-SPA mixes beside that.
    """
    known = predict("skipinit")
    assert known.spread < 1e-9
    assert 0.5 < known.correlation < predict("espa").correlation < 0.8
