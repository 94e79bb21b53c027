"""Logarithmic axes whose numbers reach the ends of the range: drawn without a warning, and visible."""

import numpy as np
import pytest

from kernelprop import plotting
from kernelprop.results import Evolution, GradientNorms


def norms(**rows):
    defaults = dict.fromkeys(("query", "key", "value", "output", "mlp_in", "mlp_out"))
    layers = len(next(iter(rows.values())))
    return GradientNorms(**defaults | rows, query_exact=np.ones(layers, bool), width=1)


@pytest.mark.parametrize(
    "values",
    [[1e-300, 1e300], [1e308, 1e308], [1e308, 1e-307], [1.7e308, 1e306], [3e-308, 3e-308], [1.0, 10.0], [2.0, 2.0]],
)
def test_gradients_of_any_size_are_on_the_picture(values):
    figure = plotting.gradient_profile(norms(value=np.array(values), mlp_in=np.array([1.0, values[0]])))
    figure.draw_without_rendering()
    for axes in figure.axes:
        low, high = axes.get_ylim()
        for line in axes.lines:
            drawn = np.asarray(line.get_ydata(), float)
            assert np.isfinite(drawn).all()
            assert (low <= drawn).all()
            assert (drawn <= high).all()
        assert any(low <= tick <= high for tick in axes.get_yticks())


def test_gradients_that_overflow_or_do_not_exist_are_gaps():
    query = np.array([np.inf, 1.0, np.nan])
    figure = plotting.gradient_profile(norms(query=query, value=np.full(3, np.inf), output=np.ones(3)))
    figure.draw_without_rendering()
    labels = [line.get_label() for line in figure.axes[0].lines]
    assert labels == ["$W_Q$", "$W_V$ (overflows)", "$W_O$"]
    np.testing.assert_array_equal(figure.axes[0].lines[0].get_ydata(), [np.nan, 1.0, np.nan])
    # Where the values have gradients, queries without any have no softmax.
    figure = plotting.gradient_profile(norms(query=np.full(3, np.nan), value=np.ones(3)))
    assert figure.axes[0].lines[0].get_label() == "$W_Q$ (no softmax form)"


@pytest.mark.parametrize(("last", "marked"), [(1e-320, [2]), (0.0, [2]), (1e-307, []), (1e-200, [])])
def test_a_residual_below_the_normal_numbers_is_marked_at_the_foot(last, marked):
    residual = np.array([1.0, 0.5, last])
    evolution = Evolution(
        depth=np.arange(3),
        kernels=np.stack([np.eye(2)] * 3),
        diagonal=np.ones((3, 2)),
        mean_correlation=np.zeros(3),
        rank_residual=residual,
        participation_ratio=np.ones(3),
        undefined=np.zeros(3, bool),
        below_floor=np.zeros(3, bool),
    )
    figure = plotting.rank_collapse(evolution)
    figure.draw_without_rendering()
    low, high = figure.axes[0].get_ylim()
    assert 0 < low < high < np.inf
    marks = [line.get_xdata().tolist() for line in figure.axes[0].lines if line.get_marker() == "v"]
    assert [depth for ends in marks for depth in set(ends)] == marked
