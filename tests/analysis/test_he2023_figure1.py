"""The study behind He et al. 2023, Figure 1: its record says what the picture shows."""

import numpy as np
import pytest

import kernelprop as kp
from analysis.he2023_figure1 import Spec
from analysis.running import run
from analysis.study import read

SMALL = Spec.quick()


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    folder = tmp_path_factory.mktemp("records")
    run(SMALL, folder)
    return read(SMALL, folder)


def test_signal_preserving_attention_ends_at_its_prescribed_kernels(found):
    np.testing.assert_allclose(found.at("uspa")["kernels"][-1], kp.kernels.equicorrelated(8, 0.8), rtol=1e-6)
    np.testing.assert_allclose(found.at("espa")["kernels"][-1], kp.kernels.exponential(8, 0.005), rtol=1e-6)
    assert found.at("vanilla")["mean_correlation"][-1] > 0.99


def test_the_kept_record_shows_what_the_paper_does():
    found = read(Spec())
    assert (found.study.length, found.study.depth) == (100, 100)
    correlation = {point: found.at(point)["mean_correlation"] for point in found.study.points()}
    # The usual attention has lost the positions after ten of a hundred layers; the others end where they should.
    assert correlation["vanilla"][10] > 0.999
    assert correlation["uspa"][100] == pytest.approx(0.8, abs=1e-9)
    lags = np.arange(1, 100)
    assert correlation["espa"][100] == pytest.approx(np.average(np.exp(-0.005 * lags), weights=100 - lags), abs=1e-9)
