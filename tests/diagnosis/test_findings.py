"""What is found in an evolution and in gradient norms, on numbers whose fate is known by construction."""

from types import SimpleNamespace

import numpy as np
import pytest

from kernelprop.diagnosis.collapse import collapse_findings, collapsed_since
from kernelprop.diagnosis.diagonal import diagonal_factors, diagonal_findings
from kernelprop.diagnosis.finding import runs
from kernelprop.diagnosis.margins import margins
from kernelprop.diagnosis.stream import Stream
from kernelprop.diagnosis.trainability import gradient_spread, trainability_findings


def evolution(diagonal, correlation=None, residual=None):
    """What the findings read of an evolution; ``diagonal`` is ``(L+1, T)``."""
    diagonal = np.asarray(diagonal, float)
    apart = np.zeros(len(diagonal)), np.ones(len(diagonal))
    return SimpleNamespace(
        diagonal=diagonal,
        mean_correlation=apart[0] if correlation is None else np.asarray(correlation),
        rank_residual=apart[1] if residual is None else np.asarray(residual),
        layers=len(diagonal) - 1,
        length=diagonal.shape[1],
    )


def stream(diagonal, normed=False, final=False):
    return Stream(np.asarray(diagonal, float), normed, final)


def powers(factor, layers, positions=3):
    return np.repeat(float(factor) ** np.arange(layers + 1)[:, None], positions, 1)


def norms(query, value):
    return SimpleNamespace(query=np.square(query), value=np.square(value))


def kinds(findings):
    return [(finding.kind, finding.ill) for finding in findings]


def test_collapse_names_the_first_layer_from_which_it_lasts():
    """A kernel that comes back after layer 1 has not collapsed there."""
    correlation = np.array([0.0, 0.995, 0.5, 0.992, 0.999])
    assert collapsed_since(correlation, np.ones(5)) == 3
    (found,) = collapse_findings(evolution(powers(1, 4), correlation))
    assert (found.kind, found.ill, found.layers) == ("collapse", True, (3, 4))
    assert found.words == "collapses by layer 3: mean correlation 0.9990 and rank residual 1 after layer 4"


def test_positions_of_one_direction_and_many_sizes_have_collapsed_too():
    assert collapsed_since(np.array([0.0, 0.5]), np.array([1.0, 0.09])) == 1


def test_a_kernel_that_comes_collapsed_is_no_fault_of_the_network():
    assert kinds(collapse_findings(evolution(powers(1, 2), [1.0, 1.0, 1.0]))) == [("collapse", False)]


def test_a_position_that_loses_its_signal_is_ill_and_one_that_never_had_it_is_not():
    lost = powers(1, 3)
    lost[2:, 1] = 0.0
    (found,) = collapse_findings(evolution(lost))
    assert (found.ill, found.words) == (True, "has no signal at position 1 from layer 2 on")
    lost[:, 1] = 0.0
    assert kinds(collapse_findings(evolution(lost))) == [("silence", False)]
    # Case 52: a kernel of zeros is never healthy.
    assert kinds(collapse_findings(evolution(0 * lost))) == [("silence", True)]


@pytest.mark.parametrize(
    ("factor", "kind", "words"),
    [
        (2.0, "growth", "the diagonal grows by a factor 2 a layer, from 1 to 256 after layer 8"),
        (0.5, "shrinkage", "the diagonal shrinks by a factor 0.5 a layer, from 0.5 after layer 1 to 0.00391"),
    ],
)
def test_a_geometric_diagonal_gives_back_its_factor(factor, kind, words):
    (found,) = diagonal_findings(stream(powers(factor, 8), normed=False))
    assert (found.kind, found.ill) == (kind, True)
    assert found.words.startswith(words)


def test_a_diagonal_within_a_factor_of_ten_is_left_alone():
    assert not list(diagonal_findings(stream(powers(9.9 ** (1 / 8), 8), normed=False)))
    assert list(diagonal_findings(stream(powers(10.1 ** (1 / 8), 8), normed=False)))


def test_averaging_takes_variance_once_and_without_harm():
    """Uniform attention over 64 positions: 1, then 1/64 for ever."""
    assert not list(diagonal_findings(stream(np.r_[[[1.0]], np.full((9, 1), 1 / 64)], normed=False)))


def test_the_equal_steps_of_a_normed_residual_stream_are_worth_knowing_and_no_more():
    """Case 39: 24 blocks of two branches of unit variance, 1 to 49; the same growth in equal factors is ill."""
    steps = 1 + 2 * np.arange(25.0)[:, None]
    assert kinds(diagonal_findings(stream(steps, normed=True))) == [("growth", False)]
    assert kinds(diagonal_findings(stream(steps, normed=False))) == [("growth", True)]
    assert kinds(diagonal_findings(stream(powers(49 ** (1 / 24), 24), normed=True))) == [("growth", True)]


def test_the_factors_that_decide_are_those_of_a_geometric_and_of_an_even_diagonal():
    """Doubling: 2³ from depth 0, 2² shrunk upside down from depth 1. Even steps 1 to 49: the last half alone makes
    (49/25)² = 3.84 over all 24 layers, which decides where norms are."""
    assert diagonal_factors(stream(powers(2, 3), normed=False)) == pytest.approx({"growth": 8, "shrinkage": 1 / 4})
    steps = 1 + 2 * np.arange(25.0)[:, None]
    assert diagonal_factors(stream(steps, normed=False))["growth"] == pytest.approx(49)
    assert diagonal_factors(stream(steps, normed=True))["growth"] == pytest.approx((49 / 25) ** 2)
    steps[-1] = np.inf
    assert diagonal_factors(stream(steps, normed=True)) == {"growth": np.inf}


def test_a_stream_in_front_of_a_final_norm_is_told_so():
    (found,) = diagonal_findings(stream(powers(9, 3), normed=True, final=True))
    assert found.words == "the diagonal grows by a factor 9 a layer, from 1 to 729 after layer 3, before the final norm"


def test_the_worst_position_is_named_where_they_differ():
    diagonal = powers(1, 4)
    diagonal[:, 2] = 3.0 ** np.arange(5)
    (found,) = diagonal_findings(stream(diagonal, normed=False))
    assert found.words == "the diagonal of position 2 grows by a factor 3 a layer, from 1 to 81 after layer 4"


def test_an_overflowing_diagonal_is_said_with_its_depth():
    diagonal = powers(2, 4)
    diagonal[3:] = np.inf
    (found,) = diagonal_findings(stream(diagonal, normed=False))
    assert found.words == "overflows: the diagonal has no finite value from depth 3 on"


@pytest.mark.parametrize(("ratio", "dead"), [(2.0**-8, False), (2.0**-8 * 0.99, True)])
def test_queries_are_dead_below_half_the_gap_between_neighbours_in_bfloat16(ratio, dead):
    found = list(trainability_findings(norms([ratio, 1.0], [1.0, 1.0])))
    assert kinds(found) == ([("queries", True)] if dead else [])


def test_dead_queries_are_told_layer_by_layer_and_type_by_type():
    (found,) = trainability_findings(norms([1.0, 1e-3, 1e-3, 1.0, 1e-9], np.ones(5)))
    assert found.words == "the queries of layers 2 to 3, 5 are dead in bfloat16, those of layer 5 in float32 too"
    assert found.layers == (2, 5)


def test_value_gradients_a_hundred_times_apart_are_ill():
    assert gradient_spread(norms([1.0, 1.0], [1.0, 50.0])) == 50.0
    assert not list(trainability_findings(norms([1.0, 99.0], [1.0, 99.0])))
    (found,) = trainability_findings(norms([1.0, 200.0], [1.0, 200.0]))
    assert found.words == "the value gradient of layer 2 is 200 times that of layer 1"


@pytest.mark.parametrize(
    ("name", "changed", "words"),
    [
        ("mean correlation", {"correlation": 0.98996}, "mean correlation 0.98996 < 0.99"),
        ("mean correlation", {"correlation": 0.99}, "mean correlation 0.99 >= 0.99 (ill)"),
        ("rank residual", {"residual": 0.1}, "rank residual 0.1 <= 0.1 (ill)"),
        ("rank residual", {"residual": 0.10001}, "rank residual 0.10001 > 0.1"),
        ("growth of the diagonal", {"factor": 10.1}, "growth of the diagonal 10.1 >= 10 (ill)"),
        ("least query over value gradient", {"query": 2.0**-8 * 0.99}, "gradient 0.003867 < 0.003906 (ill)"),
        ("value gradients, largest over least", {"value": 99.9999}, "largest over least 99.9999 < 100"),
    ],
)
def test_a_number_stands_beside_its_limit_in_digits_that_tell_them_apart(name, changed, words):
    given = {"correlation": 0.5, "residual": 0.5, "factor": 1.0, "query": 1.0, "value": 1.0} | changed
    seen = evolution(powers(given["factor"], 1), [0.0, given["correlation"]], [1.0, given["residual"]])
    seen.kernels = np.ones(1)
    weights = norms([given["query"], 1.0], [1.0, given["value"]])
    found = {margin.name: margin for margin in margins(seen, stream(seen.diagonal), weights)}
    assert found[name].words.endswith(words)
    ill = {finding.kind for finding in (*collapse_findings(seen), *diagonal_findings(stream(seen.diagonal)))}
    assert {margin.kind for margin in found.values() if margin.ill} == ill | {
        finding.kind for finding in trainability_findings(weights)
    }


def test_layers_without_queries_are_not_called_dead():
    assert not list(trainability_findings(norms([np.nan, np.nan], [1.0, 1.0])))


def test_runs_of_layers():
    assert runs([1]) == "1"
    assert runs([1, 2, 4]) == "1 to 2, 4"
    assert runs([]) == ""
