"""The study behind He et al. 2023, Figure 1: its record says what the picture shows."""

import json

import numpy as np
import pytest

import kernelprop as kp
from analysis.he2023_figure1 import NAME, Study, run
from analysis.records import read_record
from figures.he2023_figure1 import main as draw

SMALL = Study(length=8, depth=6, shown=(0, 1, 6), draws=4, chains=2)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("records")
    run(SMALL, folder)
    return folder


def test_signal_preserving_attention_ends_at_its_prescribed_kernels(folder):
    arrays = read_record(NAME, folder).arrays
    np.testing.assert_allclose(arrays["uspa_kernels"][-1], kp.kernels.equicorrelated(8, 0.8), rtol=1e-6)
    np.testing.assert_allclose(arrays["espa_kernels"][-1], kp.kernels.exponential(8, 0.005), rtol=1e-6)
    assert arrays["vanilla_mean_correlation"][-1] > 0.99


def test_the_record_says_what_made_it(folder):
    words = read_record(NAME, folder).words
    assert words["spec"] == json.loads(json.dumps(SMALL.__dict__))
    assert {"time", "device", "jax", "kernelprop"} <= words["environment"].keys()
    assert words["seconds"] > 0


def test_the_picture_is_drawn_from_the_record(folder, tmp_path):
    files = draw(folder, tmp_path)
    assert [file.name for file in files] == ["he2023_figure1.png", "he2023_figure1.svg"]
    assert all(file.stat().st_size > 10_000 for file in files)


def test_a_missing_record_names_the_command_that_makes_it(tmp_path):
    with pytest.raises(ValueError, match=r"no such record; python -m analysis.he2023_figure1 makes it"):
        draw(tmp_path, tmp_path)


def test_the_kept_record_shows_what_the_paper_does():
    record = read_record(NAME)
    assert (record.words["spec"]["length"], record.words["spec"]["depth"]) == (100, 100)
    correlation = {name: record.arrays[f"{name}_mean_correlation"] for name in ("vanilla", "uspa", "espa")}
    # The usual attention has lost the positions after ten of a hundred layers; the others end where they should.
    assert correlation["vanilla"][10] > 0.999
    assert correlation["uspa"][100] == pytest.approx(0.8, abs=1e-9)
    lags = np.arange(1, 100)
    assert correlation["espa"][100] == pytest.approx(np.average(np.exp(-0.005 * lags), weights=100 - lags), abs=1e-9)
