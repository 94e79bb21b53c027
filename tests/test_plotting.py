"""Figures: written whole, without a display, and honest about zeros."""

import os
import subprocess
import sys

import matplotlib
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from kernelprop import observables, plotting
from kernelprop.results import Evolution


def evolution(kernels, keep=None, **more):
    layers = kernels.shape[-3] - 1
    kept = np.arange(layers + 1) if keep is None else np.array(keep)
    numbers = {
        "diagonal": observables.diagonal(kernels),
        "mean_correlation": observables.mean_correlation(kernels),
        "rank_residual": observables.rank_residual(kernels),
        "participation_ratio": observables.participation_ratio(kernels),
        "undefined": observables.undefined_tokens(kernels).any(-1),
        "below_floor": np.zeros(kernels.shape[:-2], bool),
    }
    return Evolution(depth=kept, kernels=kernels[..., kept, :, :], **(numbers | more))


@pytest.fixture(scope="module")
def collapsing():
    """A mixture of the identity and uniform attention, ten layers, four positions."""
    shares = 0.8 ** (2 * np.arange(11))
    ones = np.full((4, 4), 1 / 4)
    return evolution(np.stack([share * (np.eye(4) - ones) + ones for share in shares]))


@pytest.fixture(scope="module")
def zeros():
    """Rank residuals 1, 0.1, 0, 0 with bands that reach 0."""
    kernels = np.stack([np.eye(4)] * 4)
    residual = np.array([1, 0.1, 0, 0])
    return evolution(kernels, rank_residual=residual, rank_residual_stderr=residual)


def drawn(axes, kind="o"):
    return [np.asarray(line.get_ydata(), float) for line in axes.lines if line.get_marker() == kind]


def written(figure, tmp_path, ending="png"):
    path = tmp_path / f"figure.{ending}"
    plotting.save_figure(figure, path)
    return path.read_bytes()


SIGNATURES = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}


@pytest.mark.parametrize("ending", SIGNATURES)
def test_every_kind_of_file(ending, collapsing, tmp_path):
    content = written(plotting.rank_collapse(collapsing), tmp_path, ending)
    assert content.startswith(SIGNATURES[ending])
    assert content == written(plotting.rank_collapse(collapsing), tmp_path, ending)
    assert [p.name for p in tmp_path.iterdir()] == [f"figure.{ending}"]


def test_other_endings_and_missing_folders(tmp_path):
    with pytest.raises(ValueError, match=r"figure\.jpg: a figure is written as \.png, \.svg or \.pdf"):
        plotting.save_figure(Figure(), tmp_path / "figure.jpg")
    with pytest.raises(ValueError, match="does not exist"):
        plotting.save_figure(Figure(), tmp_path / "absent" / "figure.png")
    assert list(tmp_path.iterdir()) == []


def test_a_figure_that_fails_leaves_nothing(tmp_path):
    class Broken(Figure):
        def savefig(self, stream, **options):
            stream.write(b"half")
            raise RuntimeError("broken")

    with pytest.raises(RuntimeError):
        plotting.save_figure(Broken(), tmp_path / "figure.png")
    assert list(tmp_path.iterdir()) == []


def test_zeros_on_the_log_axis_case_65(zeros):
    figure = plotting.rank_collapse(zeros)
    left = figure.axes[0]
    low, high = left.get_ylim()
    assert left.get_yscale() == "log"
    assert 0 < low < 0.1
    assert 1 <= high < np.inf
    (line,) = drawn(left)
    np.testing.assert_array_equal(line, [1, 0.1, np.nan, np.nan])
    (marks,) = [line for line in left.lines if line.get_marker() == "v"]
    np.testing.assert_array_equal(marks.get_xdata(), [2, 3])
    # Drawing warns of nothing (warnings are errors here), and the data still hold 0.
    figure.draw_without_rendering()
    assert (zeros.rank_residual[2:] == 0).all()


def test_nothing_positive_and_nothing_defined_case_65():
    for kernels in (np.ones((3, 4, 4)), np.zeros((3, 4, 4))):
        figure = plotting.rank_collapse(evolution(kernels, rank_residual=np.zeros(3) * kernels[:, 0, 0]))
        low, high = figure.axes[0].get_ylim()
        assert 0 < low < high < np.inf
        figure.draw_without_rendering()


def test_values_below_rounding_are_marked_not_drawn(collapsing):
    hidden = collapsing.rank_residual < 0.2
    assert hidden.any()
    figure = plotting.rank_collapse(evolution(collapsing.kernels, below_floor=hidden))
    (line,) = drawn(figure.axes[0])
    np.testing.assert_array_equal(np.isnan(line), hidden)
    assert "0, or below rounding" in [text.get_text() for text in figure.legends[0].get_texts()]


def test_several_networks_are_told_apart(collapsing, zeros):
    figure = plotting.rank_collapse({"mixture": collapsing, "zeros": zeros})
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert labels == ["mixture", "zeros", "0, or below rounding"]
    colours = {line.get_color() for line in figure.axes[1].lines}
    assert len(colours) == 2
    many = plotting.rank_collapse({f"{i}": collapsing for i in range(12)})
    assert len({line.get_color() for line in many.axes[1].lines}) == 12


def test_every_kernel_of_a_batch_is_a_line(collapsing):
    batch = evolution(np.stack([collapsing.kernels, np.ones((11, 4, 4))]))
    figure = plotting.rank_collapse({"batch": batch})
    assert len(figure.axes[1].lines) == 2
    assert len({line.get_color() for line in figure.axes[1].lines}) == 1


def test_no_networks():
    with pytest.raises(ValueError, match="no evolutions to draw"):
        plotting.rank_collapse({})


def images(figure):
    return [axes.images[0] for axes in figure.axes if axes.images]


def test_heat_maps_show_the_kernels_on_one_scale(collapsing):
    figure = plotting.kernel_heatmaps(collapsing, depths=[0, 3, -1])
    shown = images(figure)
    titles = [axes.get_title() for axes in figure.axes if axes.images]
    assert titles == ["depth 0", "depth 3", "depth 10"]
    np.testing.assert_array_equal(shown[0].get_array(), np.eye(4))
    np.testing.assert_allclose(shown[2].get_array(), observables.correlation(collapsing.kernels[-1]))
    assert {image.get_clim() for image in shown} == {(0.0, 1.0)}
    figure.draw_without_rendering()


def test_heat_maps_by_default_and_of_the_kernel_itself(collapsing):
    assert len(images(plotting.kernel_heatmaps(collapsing))) == 5
    kernels = np.stack([np.array([[4.0, -1.0], [-1.0, 1.0]])] * 2)
    figure = plotting.kernel_heatmaps(evolution(kernels), show="kernel")
    assert images(figure)[0].get_clim() == (-1.0, 4.0)
    plotting.kernel_heatmaps(evolution(np.zeros((8, 3, 3))), depths=range(8)).draw_without_rendering()


def test_heat_maps_of_one_kernel_of_a_batch(collapsing):
    batch = evolution(np.stack([collapsing.kernels, 1 + 0 * collapsing.kernels]), keep=[0, 10])
    figure = plotting.kernel_heatmaps(batch, batch=1)
    np.testing.assert_array_equal(images(figure)[0].get_array(), np.ones((4, 4)))
    with pytest.raises(ValueError, match="batch: 2 is outside 0 to 1"):
        plotting.kernel_heatmaps(batch, batch=2)
    with pytest.raises(ValueError, match="depth 5: its kernel was not kept"):
        plotting.kernel_heatmaps(batch, depths=[5])
    with pytest.raises(ValueError, match="show: 'gram' is unknown"):
        plotting.kernel_heatmaps(batch, show="gram")


def test_spectrum(collapsing):
    figure = plotting.spectrum(collapsing, depths=[0, 2])
    (axes,) = figure.axes
    flat, fallen = drawn(axes)
    np.testing.assert_allclose(flat, np.full(4, 1 / 4))
    share = 0.8**4
    np.testing.assert_allclose(fallen, np.array([1, share, share, share]) / (1 + 3 * share))
    figure.draw_without_rendering()


def test_spectrum_ends_where_rounding_begins():
    kernels = np.stack([np.eye(4), np.ones((4, 4)), np.zeros((4, 4))])
    one = evolution(kernels, eigenvalues=observables.eigenvalues(kernels))
    figure = plotting.spectrum(one)
    lines = drawn(figure.axes[0])
    assert np.isfinite(lines[1]).tolist() == [True, False, False, False]
    assert not np.isfinite(lines[2]).any()
    assert figure.axes[0].get_ylim()[0] > 0
    figure.draw_without_rendering()
    # Eigenvalues of every depth serve where the kernels were not kept.
    few = evolution(kernels, keep=[2], eigenvalues=one.eigenvalues)
    assert len(drawn(plotting.spectrum(few).axes[0])) == 3
    with pytest.raises(ValueError, match="depth 1: its kernel was not kept"):
        plotting.spectrum(evolution(kernels, keep=[2]), depths=[1])


def test_measured_against_theory(collapsing):
    measured = np.stack([np.eye(4)] * 11)
    figure = plotting.measured_against_theory(collapsing, measured)
    theory, real = figure.axes[0].lines
    np.testing.assert_array_equal(theory.get_ydata(), collapsing.mean_correlation)
    np.testing.assert_array_equal(real.get_ydata(), np.zeros(11))
    figure.draw_without_rendering()
    with pytest.raises(ValueError, match=r"measured: shape \(3, 4, 4\) is not \(L\+1, T, T\) = \(11, 4, 4\)"):
        plotting.measured_against_theory(collapsing, measured[:3])


def test_figures_leave_the_users_settings_alone(collapsing):
    with matplotlib.rc_context({"font.size": 23.0}):
        figure = plotting.rank_collapse(collapsing)
        assert matplotlib.rcParams["font.size"] == 23
    assert isinstance(figure.canvas, FigureCanvasAgg)
    assert figure.axes[0].xaxis.label.get_fontsize() == 8


SCRIPT = """
import sys
import numpy as np
from kernelprop import plotting
assert "matplotlib" not in sys.modules
from kernelprop.results import Evolution
L = np.arange(3.0)
one = Evolution(depth=np.arange(3), kernels=np.stack([np.eye(2)] * 3), diagonal=np.ones((3, 2)),
    mean_correlation=L / 2, rank_residual=1 - L / 2, participation_ratio=2 - L / 2,
    undefined=L < 0, below_floor=L < 0)
plotting.save_figure(plotting.rank_collapse(one), sys.argv[1])
assert "matplotlib.pyplot" not in sys.modules
"""


@pytest.mark.parametrize("backend", [None, "TkAgg"])
def test_no_display_is_needed_case_66(backend, tmp_path):
    environment = {k: v for k, v in os.environ.items() if k not in ("DISPLAY", "WAYLAND_DISPLAY", "MPLBACKEND")}
    if backend:
        environment["MPLBACKEND"] = backend
    path = tmp_path / "figure.png"
    run = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(path)], env=environment, capture_output=True, text=True, timeout=120
    )
    assert run.returncode == 0, run.stderr
    assert path.read_bytes().startswith(b"\x89PNG")
