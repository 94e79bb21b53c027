import numpy as np
import pytest

import kernelprop as kp
from kernelprop import balance
from kernelprop.layers import residual

KERNEL = 0.7 * np.eye(6) + 0.3


def test_the_balancing_temperature_balances():
    model = kp.Transformer(kp.espa(6, 4, gamma=0.1), mlp=kp.MLP("gelu"), residual=residual.normalised(0.6))
    found = balance.balance_temperature(model, KERNEL)
    tempered = kp.Transformer(
        model.attention, mlp=model.mlp, residual=model.residual, gains=kp.Gains(temperature=found.temperature)
    )
    norms = kp.gradient_norms(tempered, KERNEL)
    assert norms.query.sum() == pytest.approx(norms.value.sum(), rel=1e-12)
    by_layer = kp.Transformer(
        model.attention, mlp=model.mlp, residual=model.residual, gains=kp.Gains(temperature=found.by_layer)
    )
    norms = kp.gradient_norms(by_layer, KERNEL)
    np.testing.assert_allclose(norms.query, norms.value, rtol=1e-12)
    # A network that already has a temperature gives the same answer.
    assert balance.balance_temperature(tempered, KERNEL).temperature == pytest.approx(found.temperature, rel=1e-12)


def test_no_temperature_balances_a_collapsed_network():
    with pytest.raises(ValueError, match="no layer's queries have a gradient"):
        balance.balance_temperature(kp.Transformer(kp.uniform(4)), np.ones((4, 4)))


def test_the_residual_weight_is_the_largest_within_the_bound():
    model = kp.Transformer(kp.uniform(6, causal=True), 10, kp.MLP("relu"), residual.plain(), "pre")
    beta = balance.residual_scale(model, KERNEL, 3.0)

    def factor(weight):
        value = kp.gradient_norms(balance.with_branches(model, weight), KERNEL).value
        return max(value[0] / value[-1], value[-1] / value[0])

    assert 0 < beta < 1
    assert factor(beta) <= 3.0
    assert factor(beta * 1.001) > 3.0
    assert balance.residual_scale(model, KERNEL, 1e9) == 1.0
    with pytest.raises(ValueError, match=r"bound is 0\.5"):
        balance.residual_scale(model, KERNEL, 0.5)


def test_dead_queries():
    model = kp.Transformer(kp.mix(kp.uniform(4), 0.9, 0.1), 100)
    norms = kp.gradient_norms(model, np.eye(4))
    single, brain = (balance.dead_queries(norms, dtype) for dtype in ("float32", "bfloat16"))
    assert set(single) < set(brain)
    assert 100 in single
    assert 1 not in single
    with pytest.raises(ValueError, match="dtype 'int8' is unknown"):
        balance.dead_queries(norms, "int8")
