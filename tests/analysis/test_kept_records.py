"""The kept records say what their figures claim: closed forms, and theory within the measurements' errors."""

import numpy as np
import pytest

import kernelprop as kp
from analysis.activation_maps import Spec as ActivationMaps
from analysis.catalogue import NAMES, kind_of
from analysis.mismatch import Spec as Mismatch
from analysis.noci2022_correlation import Spec as Correlation
from analysis.noci2022_gradients import Spec as Gradients
from analysis.phase_map import Spec as PhaseMap
from analysis.records import FOLDER
from analysis.study import is_recorded, read
from analysis.temperature import NETWORKS
from analysis.temperature import Spec as Temperature
from analysis.trainability import COLLAPSED, QUERIES_LOW
from analysis.trainability import Spec as Trainability


@pytest.mark.parametrize("name", NAMES)
def test_every_study_is_recorded(name):
    assert is_recorded(kind_of(name)())


def test_records_are_small():
    assert sum(file.stat().st_size for file in FOLDER.glob("*.*")) < 3e6


def z_scores(of, weight):
    return (of[f"sampled_{weight}"] - of[weight]) / of[f"sampled_{weight}_stderr"]


def test_sampled_layers_agree_with_noci_2022_in_all_four_panels():
    found = read(Gradients())
    # 44 numbers: of as many standard normal ones the largest is above 4.5 in 3 of 10,000 cases.
    z = np.concatenate([z_scores(found.at(p), w) for p in found.study.points() for w in ("query", "value")])
    assert len(z) == 44
    assert np.abs(z).max() < 4.5
    # Negative control: queries without the factor (T + d)/d of Gaussian inputs are rejected.
    of = found.at("length")
    dropped = of["query"] * np.sqrt(found.study.width / (found.study.width + of["values"]))
    assert np.abs((of["sampled_query"] - dropped) / of["sampled_query_stderr"]).max() > 4.5


def test_slopes_against_input_scale_are_three_and_one():
    of = read(Gradients()).at("scale")
    rise = np.log(of["values"][-1] / of["values"][0])
    for weight, slope in (("query", 3), ("value", 1)):
        measured = np.log(of[f"sampled_{weight}"][-1] / of[f"sampled_{weight}"][0]) / rise
        assert measured == pytest.approx(slope, abs=0.05)


def test_depth_scaling_keeps_correlation_below_the_limit_of_noci_2022():
    found = read(Correlation())
    length = found.study.length
    scaled = found.at("none scaled")["mean_correlation"][-1]
    # (1 + 1/L)^L − 1 at finite depth, e − 1 at infinite.
    grown = (1 + 1 / found.study.depth) ** found.study.depth - 1
    assert scaled == pytest.approx(grown / (length + grown), rel=1e-12)
    assert scaled < float(found.at("none scaled")["limit"])
    assert found.at("none plain")["mean_correlation"][-1] > 0.999


def test_mismatch_blows_the_diagonal_up_for_correlated_inputs_alone():
    found = read(Mismatch())
    for kind in ("espa", "uspa"):
        last = {c: found.at(f"{kind} {c:g}")["diagonal"][-1].mean() for c in found.study.correlations}
        assert last[0.0] == pytest.approx(1, abs=1e-9)
        assert last[-0.01] < 1 < last[0.05] < last[0.4]
    # An equicorrelated input is what U-SPA can expect: the fit leaves no mismatch.
    np.testing.assert_allclose(found.at("uspa 0.2")["fitted_diagonal"], 1, atol=1e-9)


def test_queries_and_values_are_equal_at_the_balancing_temperature():
    found = read(Temperature())
    for point in NETWORKS:
        of = found.at(point)
        # The ratio is proportional to τ.
        np.testing.assert_allclose(of["theory"], np.array(found.study.taus) / of["balance"], rtol=1e-9)
        # All temperatures see the same draws, so that one of them is all that there is to check.
        off, error = ((of[name] / of["theory"])[0] for name in ("sampled", "sampled_stderr"))
        assert error < 0.03
        # Within four standard errors, which a ratio 20 % away must not be.
        assert abs(off - 1) < 4 * error
        assert abs(off - 1.2) > 4 * error


def test_a_network_that_preserves_its_signal_loses_it_at_a_depth_that_grows_with_the_width():
    study = PhaseMap()
    found = read(study)
    length, rho = study.length, study.rho
    last = found.at("preserving infinite")["participation_ratio"][-1]
    assert last == pytest.approx(length / (1 + (length - 1) * rho**2), rel=1e-9)
    collapsed = [np.argmax(found.at(f"preserving {d}")["participation_ratio"] < 2) for d in study.widths]
    assert (np.diff(collapsed) >= 0).all()
    assert collapsed[-1] > 5 * collapsed[0]
    # Negative control: where theory says collapse the width hardly matters, and the order above isn't found.
    collapsed = np.array([np.argmax(found.at(f"collapsing {d}")["participation_ratio"] < 2) for d in study.widths])
    assert not (np.diff(collapsed) >= 0).all()
    assert np.ptp(collapsed) < 0.1 * collapsed.mean()


def test_shaped_activations_end_where_they_were_sent():
    found = read(ActivationMaps())
    middle = found.study.values // 2
    # TAT's target for the leaky ReLU: correlation 0 becomes 0.9 through all layers (default eta).
    assert found.at("tat(leaky_relu)")["through"][middle] == pytest.approx(0.9, abs=1e-6)
    assert found.at("relu")["once"][middle] == pytest.approx(1 / np.pi, abs=1e-9)


def test_a_deeper_network_wants_smaller_branches_and_temperature_alone_moves_the_queries():
    study = Trainability()
    found = read(study)
    for point in study.points():
        codes = study.verdict(found.at(point))
        assert (codes == 0).any(), f"{point}: no healthy setting on the grid"
        # What τ can't change: everything but the queries.
        assert (np.diff(codes & ~(QUERIES_LOW | 2 * QUERIES_LOW), axis=1) == 0).all()
    largest = {
        point: study.beta_values()[np.flatnonzero((study.verdict(found.at(point)) & COLLAPSED) == 0)[-1] // study.taus]
        for point in ("32 12 gelu none", "32 48 gelu none")
    }
    assert largest["32 48 gelu none"] < largest["32 12 gelu none"]


def test_a_recorded_point_is_what_the_library_says_today():
    found = read(Mismatch())
    kernel = kp.kernels.equicorrelated(found.study.length, 0.2)
    now = kp.mismatch(kp.espa(found.study.length, found.study.depth, found.study.gamma), kernel).diagonal
    np.testing.assert_allclose(found.at("espa 0.2")["diagonal"][-1], now, rtol=1e-10)
