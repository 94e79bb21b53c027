"""Two sick architectures get different advice, a healthy one none; what is suggested has been computed."""

import numpy as np
import pytest

import kernelprop as kp
from kernelprop.diagnosis.diagnose import _pointless, diagnose
from kernelprop.diagnosis.remedies import REMEDIES, Case, Refusal, is_causal, shaped_versions

LENGTH, DEPTH = 12, 12
INPUT = kp.kernels.identity(LENGTH)


@pytest.fixture(scope="module")
def averaging():
    """Uniform attention alone: the first layer leaves all positions equal."""
    return diagnose(kp.Transformer(kp.uniform(LENGTH), DEPTH), INPUT)


@pytest.fixture(scope="module")
def fading():
    """E-SPA, which keeps the kernel, under GELU MLPs that take variance away in every layer."""
    return diagnose(kp.Transformer(kp.espa(LENGTH, DEPTH), mlp=kp.MLP("gelu")), INPUT)


def names(diagnosis):
    return {attempt.name for attempt in diagnosis.suggestions}


@pytest.mark.slow  # the default run has the same check as a docstring of `diagnose`
def test_a_healthy_network_gets_no_advice():
    found = diagnose(kp.Transformer(kp.espa(LENGTH, DEPTH)), INPUT)
    assert found.healthy
    assert (found.attempts, found.suggestions) == ((), ())


@pytest.mark.slow
def test_two_sick_networks_get_different_advice(averaging, fading):
    assert averaging.before.ills == {"collapse", "queries"}
    assert names(averaging) == {"residual scale", "signal-preserving attention"}
    assert "shrinkage" in fading.before.ills
    assert "collapse" not in fading.before.ills
    assert names(fading) == {"residual scale", "shaped activation"}


@pytest.mark.slow
def test_what_cures_one_does_not_help_the_other(averaging, fading):
    """The negative control: advice is not a list that everybody gets."""
    useless = {attempt.name: attempt for attempt in fading.attempts if not attempt.helps}
    assert "signal-preserving attention" in useless
    assert "shrinkage" in useless["signal-preserving attention"].after.ills
    refused = {attempt.name: attempt.refusal for attempt in averaging.attempts if attempt.refusal}
    assert "no plain MLP" in refused["shaped activation"]
    assert "exactly 0" in refused["temperature"]
    # Shaping needs an MLP, which no other change brings; a temperature may be had once the queries have gradients.
    assert {a.name for a in averaging.attempts if a.lasting} == {"shaped activation"}


@pytest.mark.slow
def test_helping_and_curing_are_what_the_findings_say(averaging, fading):
    for diagnosis in (averaging, fading):
        for attempt in diagnosis.attempts:
            left = None if attempt.after is None else attempt.after.ills
            assert attempt.cures == (left is not None and not left)
            assert attempt.helps == (left is not None and left < diagnosis.before.ills)
            assert (attempt.refusal is None) == (attempt.after is not None)


@pytest.mark.slow
def test_the_numbers_after_a_residual_scale_are_those_of_its_closed_form(averaging):
    """``α² = 1 − 1/L, β² = 1/L``: ``tr Σ`` and ``1ᵀΣ1`` follow two geometric sequences (theory: section 6)."""
    (attempt,) = [one for one in averaging.suggestions if one.name == "residual scale"]
    kept = (1 - 1 / DEPTH) ** DEPTH  # of the centred part; the common part keeps its size
    spread = kept * (LENGTH - 1)
    assert attempt.after.numbers()["rank_residual"] == pytest.approx(np.sqrt(spread / (spread + 1)), rel=1e-12)


@pytest.mark.slow
def test_the_numbers_after_signal_preservation_are_the_prescribed_kernels(averaging):
    (attempt,) = [one for one in averaging.suggestions if one.name == "signal-preserving attention"]
    lag = np.abs(np.arange(LENGTH)[:, None] - np.arange(LENGTH))
    prescribed = np.exp(-0.005 * lag)
    mean = (prescribed.sum() - LENGTH) / (LENGTH * (LENGTH - 1))
    assert attempt.after.numbers()["mean_correlation"] == pytest.approx(mean, rel=1e-10)


@pytest.mark.slow
def test_queries_that_are_small_and_alive_are_balanced_by_a_temperature():
    """Nearly equal tokens beside weak branches: nothing collapses, and only the queries are too quiet."""
    residual = kp.Residual(attention=(1.0, 0.1), mlp=(1.0, 0.1))
    model = kp.Transformer(kp.uniform(32), 3, residual=residual)
    found = diagnose(model, kp.kernels.equicorrelated(32, 0.98))
    assert found.before.ills == {"queries"}
    assert names(found) == {"temperature"}
    (attempt,) = found.suggestions
    np.testing.assert_allclose(attempt.after.norms.query.sum(), attempt.after.norms.value.sum(), rtol=1e-10)


@pytest.mark.slow
def test_a_blow_up_by_a_correlated_input_is_met_by_a_schedule_that_begins_there():
    found = diagnose(kp.Transformer(kp.espa(64, 4)), kp.kernels.equicorrelated(64, 0.6))
    assert found.before.ills == {"growth"}
    assert "signal-preserving attention" in names(found)
    (attempt,) = [one for one in found.suggestions if one.name == "signal-preserving attention"]
    assert "U-SPA, ρ_0 = 0.6" in attempt.changes[0]
    np.testing.assert_allclose(attempt.after.evolution.diagonal, 1.0, atol=1e-10)


def test_what_no_other_change_makes_possible_is_not_tried_again():
    case = Case(INPUT, None, None)
    shaped = kp.Transformer(kp.uniform(LENGTH), DEPTH, mlp=kp.MLP(kp.tat("leaky_relu", depth=DEPTH, eta=0.5)))
    for model, reason in ((shaped, "shaped already"), (kp.Transformer(kp.uniform(LENGTH)), "no plain MLP")):
        with pytest.raises(Refusal, match=reason):
            next(shaped_versions(model, case))
    scale, attention, shaping, temperature = REMEDIES
    assert _pointless((scale, shaping), {"shaped activation"})
    assert not _pointless((scale, temperature), {"shaped activation"})
    assert _pointless((scale, attention), set())


def test_what_is_causal():
    assert is_causal(kp.uniform(4, causal=True))
    assert not is_causal(kp.uniform(4))
    assert not is_causal(kp.dense(np.full((2, 3, 3), 1 / 3)))
    assert is_causal(kp.random_softmax(4, causal=True))
