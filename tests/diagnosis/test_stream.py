"""The residual stream of networks whose variance has a closed form, in front of a final norm and without one.

Identity attention and a linear MLP behind a norm give every branch the variance 1, so that each sublayer takes ``q`` to
``a² q + b²``: after ``n`` of them ``q_n = a^{2n} q_0 + b² (a^{2n} − 1) / (a² − 1)``, and ``q_0 + n b²`` for ``a = 1``.
"""

from dataclasses import replace

import numpy as np
import pytest

import kernelprop as kp
from kernelprop.diagnosis.examination import examine
from kernelprop.diagnosis.stream import Stream, stream_of, without_final_norm

LENGTH = 3
IDENTITY = np.eye(LENGTH)
FINAL = kp.Norm("pre", final=True)


def network(depth, skip, branch=1.0, norm=FINAL, mlp=None, matrix=IDENTITY, **parts):
    pair = (skip, branch)
    return kp.Transformer(kp.dense(matrix), depth, mlp, kp.Residual(pair, pair), norm, **parts)


def closed_form(start, skip, branch, sublayers):
    """Step by step in whole numbers where the weights are."""
    values = [start]
    for _ in range(sublayers):
        values.append(skip**2 * values[-1] + branch**2)
    return np.array(values, float)


@pytest.mark.slow
@pytest.mark.parametrize("depth", [1, 3])
def test_the_stream_ends_at_the_last_sum_in_front_of_a_final_norm(depth):
    """Two sublayers a layer, from 2 and what positional embeddings add; L = 1 has no earlier depth to go by."""
    model = network(depth, 3, 2, mlp=kp.MLP("linear"), positions=0.5 * np.eye(LENGTH))
    evolution = kp.propagate(model, 2 * np.eye(LENGTH))
    stream = stream_of(evolution)
    expected = closed_form(2.5, 3, 2, 2 * depth)[::2]
    assert expected[-1] == pytest.approx(9 ** (2 * depth) * 2.5 + 4 * (9 ** (2 * depth) - 1) / 8)
    np.testing.assert_allclose(stream.diagonal, np.repeat(expected[:, None], LENGTH, 1), rtol=1e-13)
    assert (stream.layers, stream.end) == (depth, f"after layer {depth}, before the final norm")
    # The control: what comes out of the network says nothing of it.
    np.testing.assert_allclose(evolution.diagonal[-1], 1, rtol=1e-13)


@pytest.mark.slow
def test_batches_and_kernels_that_were_not_kept():
    inputs = np.stack([np.eye(LENGTH), 2 * np.eye(LENGTH)])
    both = stream_of(kp.propagate(network(2, 3), inputs))
    np.testing.assert_allclose(both.diagonal[:, :, 0], [[1, 10, 91], [2, 19, 172]], rtol=1e-13)
    last = kp.propagate(network(2, 3), inputs, "last")
    np.testing.assert_allclose(stream_of(last).diagonal[:, :, 0], [[1, 10, 91], [2, 19, 172]], rtol=1e-13)
    # Where the last sum is not known the stream ends a layer earlier, and says so.
    short = stream_of(replace(last, last_sum=None))
    np.testing.assert_allclose(short.diagonal[:, :, 0], [[1, 10], [2, 19]], rtol=1e-13)
    assert short.end == "after layer 1, before the final norm"


@pytest.mark.slow
def test_a_loaded_result_has_its_stream_whole(tmp_path):
    kp.propagate(network(2, 3, mlp=kp.MLP(lambda x: x)), IDENTITY).save(tmp_path / "own.npz")
    stream = stream_of(kp.load(tmp_path / "own.npz"))
    np.testing.assert_allclose(stream.diagonal[:, 0], [1, 91, 7381], rtol=1e-10)


@pytest.mark.slow
def test_under_random_attention_the_last_sum_is_a_mean_over_chains():
    """One position, whatever the softmax: ``q`` to ``9 q + 1`` a layer."""
    model = kp.Transformer(
        kp.random_softmax(1, chains=2, draws=2), 2, residual=kp.Residual(attention=(3, 1)), norm=FINAL
    )
    np.testing.assert_allclose(stream_of(kp.propagate(model, np.eye(1))).diagonal[:, 0], [1, 10, 91], rtol=1e-12)


@pytest.mark.slow
def test_a_post_norm_is_in_the_stream_and_a_final_norm_behind_it_changes_nothing():
    evolution = kp.propagate(network(2, 3, norm=kp.Norm("post", final=True)), np.eye(LENGTH))
    np.testing.assert_allclose(stream_of(evolution).diagonal, 1, rtol=1e-13)


@pytest.mark.slow
def test_an_exploding_stream_is_ill_whatever_stands_behind_it():
    """``a = 3``: 9^8 + (9^8 − 1)/8 after eight layers, nine times as much in each."""
    seen, bare = (examine(network(8, 3, norm=norm), np.eye(LENGTH)) for norm in (FINAL, "pre"))
    last = closed_form(1, 3, 1, 8)[-1]
    assert last == 9**8 + (9**8 - 1) / 8
    assert seen.numbers()["diagonal_factor_largest"] == pytest.approx(last, rel=1e-12)
    (finding,) = [one for one in seen.findings if one.kind in ("growth", "shrinkage")]
    assert (finding.kind, finding.ill) == ("growth", True)
    assert finding.words.endswith("from 1 to 4.84e+07 after layer 8, before the final norm")
    # The norm decides no number of the stream.
    mine, other = ({m.kind: m.value for m in one.margins} for one in (seen, bare))
    for kind in ("growth", "shrinkage"):
        assert mine[kind] == pytest.approx(other[kind], rel=1e-12)


@pytest.mark.slow
def test_a_healthy_pre_ln_stream_stays_healthy_in_front_of_a_final_norm():
    """``a = b = 1``: equal steps, 1 to 13; the pace of the second half makes (13/7)² over the whole depth."""
    seen = examine(network(12, 1), np.eye(LENGTH))
    (finding,) = [one for one in seen.findings if one.kind in ("growth", "shrinkage")]
    assert (finding.kind, finding.ill) == ("growth", False)
    growth, shrinkage = (m.value for m in seen.margins if m.kind in ("growth", "shrinkage"))
    assert growth == pytest.approx((13 / 7) ** 2, rel=1e-12)
    assert shrinkage < 1
    # Identity attention has no use for queries; where positions are mixed nothing is wrong.
    mixing = 0.9 * np.eye(LENGTH) + 0.1 / LENGTH
    assert not examine(network(12, 1, matrix=mixing), np.eye(LENGTH)).ills


def test_without_a_final_norm_the_diagonal_is_the_streams():
    model = network(2, 3, norm="pre")
    assert without_final_norm(model) is model
    bare = without_final_norm(network(2, 3, norm=kp.Norm("pre", "rms", 0.1, True)))
    assert (bare.norm.place, bare.norm.kind, bare.norm.epsilon, bare.norm.final) == ("pre", "rms", 0.1, False)
    assert Stream(np.ones((4, 2))).end == "after layer 3"
