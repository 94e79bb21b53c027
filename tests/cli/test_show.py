"""``kernelprop show``: a saved result printed and drawn again."""

import pytest


@pytest.fixture
def saved(command, tmp_path):
    command("evolve --example minilm --no-plots --quiet --out saved")
    return tmp_path / "saved"


def test_show_prints_what_evolve_printed_and_draws_beside_the_file(command, saved):
    ran = command("show saved/evolution.npz")
    assert ran.code == 0
    for words in ("0.9998545", "0.3958213", "attention alone collapses it", "real network"):
        assert words in ran.out
    pictures = {path.name for path in saved.glob("*.png")}
    assert pictures == {"rank-collapse.png", "kernels.png", "measured.png"}
    assert (saved / "evolution.csv").exists()


def test_show_draws_elsewhere_at_chosen_depths(command, saved, tmp_path):
    ran = command("show saved/evolution.npz --show 0,6 --out redrawn")
    assert ran.code == 0
    assert (tmp_path / "redrawn" / "kernels.png").exists()
    assert not list(saved.glob("*.png"))
    assert "0.7711402" not in ran.out


def test_show_prints_json_and_no_pictures(command, saved):
    ran = command("show saved/evolution.npz --json --no-plots")
    assert ran.table["rows"][6]["mean_correlation"] == pytest.approx(0.9998545, abs=5e-8)
    assert not list(saved.glob("*.png"))


def test_a_file_of_no_result_is_refused(command, matrices):
    ran = command("show K.npy --no-plots")
    assert ran.code == 2
    assert "K.npy" in ran.err
    assert ran.err.count("\n") == 1
