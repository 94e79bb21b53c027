"""What the limits of a comparison say together: of made-up numbers whose law is known, no network is sampled."""

from dataclasses import replace

import numpy as np
import pytest

from kernelprop.finite.comparison import Comparison
from kernelprop.finite.limits import largest_limit, left_out, worst_fit

WIDTHS, DRAWS, ERROR = np.array([64, 128, 256, 512]), 400, 1e-3
SHAPES = {
    "kernels": (1, 8, 8),
    "diagonal": (4, 8),
    "mean_correlation": (4,),
    "participation_ratio": (4,),
    "query": (3,),
    "key": (3,),
    "value": (3,),
}
# 28 pairs, 32 entries of diagonals, 3 layers of queries and values; keys are zero.
AMONG = 28 + 32 + 3 + 3


def made(fall=lambda width: 1 / width, slope=3.0, seed=0):
    """Remainders that fall as they are told, with normal errors of which the comparison knows the size."""
    generator = np.random.default_rng(seed)
    predicted = {name: np.ones(shape) for name, shape in SHAPES.items()} | {"key": np.zeros(3)}
    effect = slope * fall(WIDTHS.astype(float))
    measured = {
        name: value
        + effect.reshape(-1, *(1,) * value.ndim)
        + ERROR * generator.normal(size=(len(WIDTHS), *value.shape))
        for name, value in predicted.items()
    }
    measured["kernels"] = (measured["kernels"] + measured["kernels"].swapaxes(-1, -2)) / 2
    measured["key"] = np.zeros((len(WIDTHS), 3))
    return Comparison(
        widths=WIDTHS,
        depth=np.array([3]),
        predicted=predicted,
        predicted_stderr={name: np.zeros_like(value) for name, value in predicted.items()},
        measured=measured,
        measured_stderr={name: np.full_like(value, ERROR) for name, value in measured.items()},
        draws=np.full(len(WIDTHS), DRAWS),
        query_exact=np.ones(3, bool),
    )


def moved(comparison, name, index, by):
    """The same comparison with one prediction that is wrong."""
    predicted = comparison.predicted[name].copy()
    predicted[index] += by
    return replace(comparison, predicted=comparison.predicted | {name: predicted})


def test_a_law_that_holds_stays_below_what_chance_gives():
    """Of 40 comparisons 1 in 20 goes above, 2 on average; 8 or more do by 1 in 1,000."""
    found = [(largest_limit(one), worst_fit(one)) for one in (made(seed=seed) for seed in range(40))]
    for of_one_kind in zip(*found, strict=True):
        assert sum(largest.value > largest.chance for largest in of_one_kind) < 8
        assert {largest.among for largest in of_one_kind} == {AMONG}
    # Student's t and F of 399 degrees of freedom, two-sided 1 - 0.95^(1/66).
    assert found[0][0].chance == pytest.approx(3.38, abs=0.02)


def test_a_law_of_one_over_the_root_of_the_width_does_not_fit():
    """The control: as large at width 64, where 1/d has a misfit of 1 on average."""
    wrong = made(fall=lambda width: width**-0.5, slope=6 * 64**-0.5)
    for comparison, (least, most) in ((made(slope=6.0), (0.5, 1.5)), (wrong, (10, 40))):
        misfits = [row["misfit"] for row in comparison.table() if row["name"] != "key"]
        assert least < np.mean(misfits) < most
    assert worst_fit(wrong).value > 2 * worst_fit(wrong).chance
    assert largest_limit(wrong).value > largest_limit(wrong).chance


@pytest.mark.parametrize(
    ("name", "index", "place"), [("diagonal", (2, 5), "diagonal[5] at depth 2"), ("value", (1,), "value in layer 2")]
)
def test_a_prediction_that_is_wrong_is_named(name, index, place):
    wrong = largest_limit(moved(made(), name, index, 10 * ERROR))
    assert wrong.value > wrong.chance
    assert wrong.place == place


def test_what_is_not_linear_in_the_kernel_is_left_out():
    comparison = made()
    wrong = moved(comparison, "participation_ratio", (2,), 1.0)
    assert np.abs(wrong.width_law("participation_ratio").limit_z()).max() > 100
    assert largest_limit(wrong) == largest_limit(comparison)
    assert left_out(wrong) == ("mean_correlation", "participation_ratio")


def test_queries_at_first_order_are_left_out_where_they_are():
    exact = np.array([False, True, True])
    comparison = replace(made(), query_exact=exact)
    assert left_out(comparison) == ("mean_correlation", "participation_ratio", "query")
    assert largest_limit(moved(comparison, "query", (0,), 1.0)) == largest_limit(comparison)
    assert largest_limit(moved(comparison, "query", (1,), 1.0)).place == "query in layer 2"


def test_two_widths_fit_any_law_and_one_has_none():
    def first(comparison, count):
        return replace(
            comparison,
            widths=WIDTHS[:count],
            draws=comparison.draws[:count],
            measured={name: value[:count] for name, value in comparison.measured.items()},
            measured_stderr={name: value[:count] for name, value in comparison.measured_stderr.items()},
        )

    assert worst_fit(first(made(), 2)) is None
    assert largest_limit(first(made(), 2)).among == AMONG
    assert largest_limit(first(made(), 1)) is None
    assert "misfit" not in first(made(), 2).table()[0]


def test_few_draws_let_chance_reach_further():
    few = replace(made(), draws=np.full(len(WIDTHS), 8))
    assert largest_limit(few).chance > 1.5 * largest_limit(made()).chance
