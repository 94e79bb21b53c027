"""The verdict in words, on networks whose fate is known."""

from types import SimpleNamespace

import numpy as np
import pytest

import kernelprop as kp
from kernelprop.cli.depths import keep_of, readable_selection
from kernelprop.cli.verdict import verdict


def evolution(kernels, residual=None):
    """What the verdict reads of an evolution, from its kernels ``(…, L+1, T, T)``."""
    kernels = np.asarray(kernels, float)
    diagonal = np.diagonal(kernels, axis1=-2, axis2=-1)
    undefined = ~(diagonal > 0).all(-1)
    length = kernels.shape[-1]
    centring = np.eye(length) - 1 / length
    with np.errstate(invalid="ignore", divide="ignore"):
        correlation = kernels / np.sqrt(diagonal[..., :, None] * diagonal[..., None, :])
        share = np.trace(centring @ kernels @ centring, axis1=-2, axis2=-1) / diagonal.sum(-1)
        pairs = np.float64(length * (length - 1))
        mean = (correlation.sum((-2, -1)) - length) / pairs
    return SimpleNamespace(
        diagonal=diagonal,
        mean_correlation=mean,
        rank_residual=np.sqrt(np.maximum(share, 0)),
        undefined=undefined,
        layers=kernels.shape[-3] - 1,
        length=length,
        description=SimpleNamespace(residual=residual),
    )


def equicorrelated(*rhos, scale=1.0):
    return [scale**depth * ((1 - rho) * np.eye(4) + rho) for depth, rho in enumerate(rhos)]


CASES = [
    (
        equicorrelated(0, 1, 1),
        "attention alone collapses it: mean correlation 1 (to rounding) after layer 2 (0.0000",
    ),
    (
        equicorrelated(0, 0.5, 0.995),
        "0.9950 after layer 2 (0.0000 at the input), rank residual 0.0612",
    ),
    (equicorrelated(0, 0.5, 0.995), "collapsed from layer 2 on"),
    (equicorrelated(0, 1 - 1e-9), "mean correlation 1 - 1.0e-09 after layer 1"),
    (equicorrelated(0, 0, 0), "attention alone keeps the positions apart: mean correlation 0.0000 after layer 2"),
    (equicorrelated(1, 1), "starts from a kernel that is collapsed already"),
    (equicorrelated(0, 1, 0.2), "keeps the positions apart: mean correlation 0.2000"),
    (equicorrelated(0, 0.5, 0.9), "draws the positions together: mean correlation 0.9000"),
    ([[[1.0]], [[1.0]]], "acts on one position, which has nothing to agree with"),
    ([np.eye(2), np.zeros((2, 2))], "leaves a position without a signal after layer 1"),
    ([np.eye(2), np.diag([1.0, np.inf])], "overflows from layer 1 on: its diagonal is beyond the range of float64"),
    (equicorrelated(0, 0, 0, scale=5.0), "the diagonal grows from 1 to 25"),
    (equicorrelated(0, 0, 0, scale=0.2), "the diagonal shrinks from 1 to 0.04"),
    ([equicorrelated(0, 1), equicorrelated(0, 0)], "leaves 1 of 2 kernels collapsed after layer 1"),
    # Positions that point one way but differ in size have collapsed to rank one too.
    ([np.eye(2), [[1.0, 3.0], [3.0, 9.0]]], "collapses it"),
]


@pytest.mark.parametrize(("kernels", "words"), CASES)
def test_verdicts(kernels, words):
    assert words in verdict(evolution(kernels))


def test_a_network_with_skips_is_not_called_attention_alone():
    assert verdict(evolution(equicorrelated(0, 0), residual=(1, 1))).startswith("attention with its residual branch")


def test_the_verdict_reads_real_evolutions():
    assert "collapsed from layer 1 on" in verdict(kp.propagate(kp.Transformer(kp.uniform(4)), np.eye(4)))


@pytest.mark.slow
@pytest.mark.parametrize(("depth", "last"), [(1, 26), (3, 16276)])
def test_a_final_norm_does_not_hide_what_the_diagonal_did(depth, last):
    """Skips of weight 5, a branch of variance 1: ``q`` to ``25 q + 1``; behind the norm it is 1 again."""
    skips = kp.Residual(attention=(5.0, 1.0))
    words = {}
    for skip in (skips, None):
        model = kp.Transformer(kp.identity(4), depth, residual=skip, norm=kp.Norm("pre", final=True))
        words[skip is None] = verdict(kp.propagate(model, np.eye(4)))
    assert words[False].endswith(f"the diagonal grows from 1 to {last:.3g} after layer {depth}, before the final norm")
    assert "the diagonal" not in words[True]


def test_a_long_network_shows_few_depths_and_its_last():
    assert readable_selection(12) == list(range(13))
    assert readable_selection(30) == [0, 1, 2, 5, 10, 20, 30]
    assert readable_selection(100) == [0, 1, 2, 5, 10, 20, 50, 100]


def test_all_kernels_are_kept_unless_they_would_fill_the_disk():
    assert keep_of(None, [0, 5], 100, 8 * 100**2) == "all"
    assert keep_of(None, [0, 5], 100, 8 * 2048**2) == [0, 5]
    assert keep_of("all", [0, 5], 100, 8 * 2048**2) == "all"
    assert keep_of("1, 2", [0], 9, 8) == [1, 2]
