"""The error of a validation loss is one that its size can be trusted by."""

import numpy as np
import pytest

import kernelprop as kp
from kernelprop.training import metrics
from kernelprop.training.lab import Plan, set_up
from kernelprop.training.loss import batch_loss
from kernelprop.training.parameters import Start
from kernelprop.training.recipe import Recipe, Watch


def test_the_error_of_four_batches_is_that_of_their_sequences(monkeypatch):
    """2000 times 4 batches of 16 sequences of known spread: the deviations have variance 1 in units of the error.

    The control: errors from the 4 batches' means are Student's of 3 degrees of freedom, of variance 3.
    """
    losses = iter(np.random.default_rng(0).normal(2.0, 0.5, size=(8000, 16)))
    drawn = []
    monkeypatch.setattr(metrics, "_losses", lambda *arguments: drawn.append(next(losses)) or drawn[-1])
    found = [metrics.validation_loss(None, None, [None] * 4) for _ in range(2000)]
    z = np.array([(estimate.mean - 2.0) / estimate.stderr for estimate in found])
    # t of 63 degrees of freedom has variance 1.033; that of 2000 is known to 3 %.
    assert abs(z.var() - 63 / 61) < 4 * np.sqrt(2 / 2000)
    means = np.mean(drawn, axis=1).reshape(2000, 4)
    by_batches = (means.mean(1) - 2.0) / (means.std(1, ddof=1) / 2)
    assert by_batches.var() > 1.5
    assert {estimate.n for estimate in found} == {4}


@pytest.mark.slow
def test_the_mean_is_the_loss_of_the_batches():
    lab = set_up(
        Plan(
            model=kp.Transformer(kp.uniform(4, causal=True)), source=kp.training.copy_back(lag=2, vocabulary=3),
            width=8, heads=None, head_width=None, weights="gaussian", trainable=(), start=Start(1.0, "gaussian"),
            recipe=Recipe(steps=2, warmup=0, batch=3), watch=Watch(points=2, batches=2, final=2), seed=0,
            dtype=np.dtype("float32"), precision="highest",
        ),
        None,
    )  # fmt: skip
    parameters = lab.initial()
    found = metrics.validation_loss(lab.net, parameters, lab.validation)
    whole = [float(batch_loss(parameters, lab.net, batch)) for batch in lab.validation]
    assert abs(float(found.mean) - np.mean(whole)) < 1e-6
    assert found.stderr > 0
