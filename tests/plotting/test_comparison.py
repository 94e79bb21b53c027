"""Pictures of sampled networks hold the numbers that they are given."""

import numpy as np
import pytest

import kernelprop as kp
from kernelprop import plotting
from kernelprop.finite.comparison import Comparison
from kernelprop.finite.ensemble import Ensemble
from kernelprop.results import Estimate

OBSERVABLES = ("mean_correlation", "rank_residual", "participation_ratio")
DEPTHS, LAYERS, DRAWS = 4, 3, 25


def numbers(start, count, stop):
    return np.geomspace(start, stop, count)


@pytest.fixture(scope="module")
def comparison():
    """Two widths; the value gradients span five decades and vanish in the last layer, the keys' are zero."""
    predicted = {name: numbers(0.9, DEPTHS, 0.1) for name in OBSERVABLES}
    predicted |= {"value": np.array([100.0, 1e-3, 0.0]), "output": np.array([1.0, 1.1, 1.2]), "key": np.zeros(LAYERS)}
    measured = {name: np.stack([1.1 * value, 1.05 * value]) for name, value in predicted.items()}
    return Comparison(
        widths=np.array([64, 128]),
        depth=np.array([3]),
        predicted=predicted,
        predicted_stderr={name: np.zeros_like(value) for name, value in predicted.items()},
        measured=measured,
        measured_stderr={name: 0.02 * value for name, value in measured.items()},
        draws=np.array([DRAWS, DRAWS]),
        description=kp.Transformer(kp.identity(2), depth=LAYERS),
    )


@pytest.fixture(scope="module")
def ensemble():
    def estimate(mean):
        return Estimate(mean, 0.1 * mean, DRAWS)

    return Ensemble(
        depth=np.array([3]),
        kernels=estimate(np.eye(2)[None]),
        diagonal=estimate(np.ones((DEPTHS, 2))),
        **{name: estimate(numbers(0.9, DEPTHS, 0.1)) for name in OBSERVABLES},
        undefined=np.zeros(DEPTHS, bool),
        below_floor=np.zeros(DEPTHS, bool),
        width=64,
        heads=1,
        head_width=64,
        draws=DRAWS,
        dtype="float32",
        precision="highest",
        value=estimate(np.array([100.0, 1e-3, 0.0])),
        key=estimate(np.zeros(LAYERS)),
    )


def panels(figure):
    return {axes.get_ylabel(): axes for axes in figure.axes}


def norm_of(weight, normalisation):
    return rf"$\|\partial\,\mathrm{{loss}}/\partial {weight}\|_F^2$" + normalisation


def told(figure):
    return [text.get_text() for text in figure.legends[0].get_texts()]


def points(axes):
    """Every set of measured points: places, values, and the ends of their bars."""
    found = []
    for container in axes.containers:
        line, _, (bars,) = container
        ends = np.array([np.asarray(segment)[:, 1] for segment in bars.get_segments() if len(segment)])
        found.append((np.asarray(line.get_xdata(), float), np.asarray(line.get_ydata(), float), ends))
    return found


def test_the_prediction_is_a_line_and_the_measurement_has_error_bars(comparison):
    figure = plotting.prediction_and_measurement(comparison)
    assert told(figure) == ["prediction", r"width 64, $\pm$ 1 s.e.", r"width 128, $\pm$ 1 s.e."]
    axes = panels(figure)["rank residual"]
    (line,) = [line for line in axes.lines if line.get_label() == "prediction"]
    np.testing.assert_array_equal(line.get_xdata(), [0, 1, 2, 3])
    np.testing.assert_array_equal(line.get_ydata(), comparison.predicted["rank_residual"])
    sets = points(axes)
    assert len(sets) == 2
    for index, (places, values, ends) in enumerate(sets):
        measured, error = (
            comparison.measured["rank_residual"][index],
            comparison.measured_stderr["rank_residual"][index],
        )
        assert np.abs(places - np.arange(DEPTHS)).max() < 0.1
        np.testing.assert_array_equal(values, measured)
        np.testing.assert_allclose(ends, np.stack([measured - error, measured + error], 1), rtol=1e-14)


def test_gradients_have_panels_of_layers_and_those_that_are_zero_have_none(comparison):
    found = panels(plotting.prediction_and_measurement(comparison))
    assert set(found) == {
        "mean correlation", "rank residual", "participation ratio", norm_of("W_V", "$/d^2$"), norm_of("W_O", "$/d^2$"),
    }  # fmt: skip
    axes = found[norm_of("W_V", "$/d^2$")]
    assert axes.get_yscale() == "log"
    assert found[norm_of("W_O", "$/d^2$")].get_yscale() == "linear"
    (line,) = [line for line in axes.lines if line.get_label() == "prediction"]
    np.testing.assert_array_equal(line.get_xdata(), [1, 2, 3])
    # A zero is a gap (case 65), and the data still hold it.
    np.testing.assert_array_equal(line.get_ydata(), [100, 1e-3, np.nan])
    assert comparison.predicted["value"][2] == 0


def test_an_ensemble_shows_its_means_and_the_spread_of_single_networks(ensemble, tmp_path):
    figure = plotting.measured_profile(ensemble)
    found = panels(figure)
    assert not any("W_K" in label for label in found)
    assert told(figure) == [r"single networks of width 64, $\pm$ 1 s.d.", r"mean of 25, $\pm$ 1 s.e."]
    axes = found["mean correlation"]
    ((_, values, ends),) = points(axes)
    mean = ensemble.mean_correlation.mean
    np.testing.assert_array_equal(values, mean)
    np.testing.assert_allclose(ends[:, 1], 1.1 * mean, rtol=1e-14)
    # The standard deviation of 25 networks is five standard errors, here half the mean.
    (band,) = axes.collections[:1]
    heights = np.asarray(band.get_paths()[0].vertices)[:, 1]
    assert heights.max() == pytest.approx(1.5 * mean[0])
    assert heights.min() == pytest.approx(0.5 * mean[-1])
    plotting.save_figure(figure, tmp_path / "ensemble.png")
    assert (tmp_path / "ensemble.png").read_bytes().startswith(b"\x89PNG")


def test_a_band_that_reaches_zero_stays_on_a_logarithmic_axis(ensemble):
    axes = panels(plotting.measured_profile(ensemble))[norm_of("W_V", ", $d = 64$")]
    assert axes.get_yscale() == "log"
    low, high = axes.get_ylim()
    assert 0 < low < 1e-3 < 100 < high
    assert np.isfinite([low, high]).all()
