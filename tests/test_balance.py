"""Balancing temperatures, residual weights, and queries that rounding kills, against networks and drawn gradients."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import kernelprop as kp
from kernelprop import balance
from kernelprop.layers import residual

KERNEL = 0.7 * np.eye(6) + 0.3
DEPTH = 4
# One structure for all tests: one compilation.
CAUSAL = kp.uniform(6, causal=True).as_matrix()


def network(matrix=CAUSAL, **gains):
    return kp.Transformer(kp.dense(matrix), DEPTH, None, residual.plain(), "pre", gains=kp.Gains(**gains))


MODEL = network()


def tempered(temperature):
    return network(temperature=temperature)


def test_the_balancing_temperature_balances():
    found = balance.balance_temperature(MODEL, KERNEL)
    norms = kp.gradient_norms(tempered(found.temperature), KERNEL)
    assert norms.query.sum() == pytest.approx(norms.value.sum(), rel=1e-12)
    norms = kp.gradient_norms(tempered(found.by_layer), KERNEL)
    np.testing.assert_allclose(norms.query, norms.value, rtol=1e-12)
    assert not found.exact
    # A network that already has a temperature gives the same answer.
    again = balance.balance_temperature(tempered([1, 2, 3, 4]), KERNEL)
    np.testing.assert_allclose(again.by_layer, found.by_layer, rtol=1e-12)
    assert again.temperature == pytest.approx(found.temperature, rel=1e-12)


def test_what_no_temperature_balances_is_refused():
    with pytest.raises(ValueError, match="no layer's queries have a gradient"):
        balance.balance_temperature(MODEL, np.ones((6, 6)))
    with pytest.raises(ValueError, match="layer 2: its temperature is 0"):
        balance.balance_temperature(tempered([1, 0, 1, 1]), KERNEL)
    with pytest.raises(ValueError, match="layer 1: no softmax makes its attention"):
        balance.balance_temperature(network(-CAUSAL), KERNEL)
    with pytest.raises(ValueError, match="layer 1: its query gradient overflows"):
        balance.balance_temperature(tempered(1e200), KERNEL)
    with pytest.raises(ValueError, match="random logits move the kernel too"):
        balance.balance_temperature(kp.Transformer(kp.random_softmax(6)), KERNEL)


def test_the_residual_weight_is_the_largest_within_the_bound():
    beta = balance.residual_scale(MODEL, KERNEL, 1.5)

    def factor(weight):
        value = kp.gradient_norms(balance.with_branches(MODEL, weight), KERNEL).value
        return max(value[0] / value[-1], value[-1] / value[0])

    assert 0 < beta < 1
    assert factor(beta) <= 1.5
    assert factor(beta * 1.001) > 1.5
    assert balance.residual_scale(MODEL, KERNEL, 1e9) == 1.0
    with pytest.raises(ValueError, match=r"bound is 0\.5"):
        balance.residual_scale(MODEL, KERNEL, 0.5)
    with pytest.raises(ValueError, match="no layer's values have a gradient"):
        balance.residual_scale(network(output=0.0), KERNEL, 2.0)


@pytest.mark.slow
def test_a_residual_weight_is_found_where_smaller_ones_break_the_bound():
    """The factor falls from 1.84 at small weights to 1.03 at 0.7, and rises again to 1.19 at 1."""
    model = kp.Transformer(kp.espa(6, 8), mlp=kp.MLP("gelu", gain_out=3.0))
    kernel = kp.kernels.equicorrelated(6, 0.2)

    def factor(weight):
        value = kp.gradient_norms(balance.with_branches(model, weight), kernel).value
        return max(value[0] / value[-1], value[-1] / value[0])

    beta = balance.residual_scale(model, kernel, 1.05)
    assert factor(beta) <= 1.05 < min(factor(beta * 1.001), factor(1.0), factor(0.1))
    with pytest.raises(ValueError, match=r"even branches of weight 1e-06 exceed the bound 1\.01"):
        balance.residual_scale(model, kernel, 1.01)


def test_dead_queries():
    norms = kp.gradient_norms(MODEL, KERNEL)
    shares = np.array([1.0, 2.0**-7.5, 2.0**-8.5, 2.0**-25])
    norms = replace(norms, query=shares**2 * norms.value, query_rounding=norms.value)
    for function in (balance.dead_queries, balance.queries_lost_to_rounding):
        assert function(norms, "bfloat16") == [3, 4]
        assert function(norms) == [4]
        with pytest.raises(ValueError, match=f"{function.__name__}: dtype 'int8' is unknown; use float32"):
            function(norms, "int8")


def test_neither_scale_nor_temperature_saves_queries_from_rounding():
    kernel = 0.002 * np.eye(6) + 0.998
    norms = kp.gradient_norms(MODEL, kernel)
    lost, quiet = balance.queries_lost_to_rounding(norms, "bfloat16"), balance.dead_queries(norms, "bfloat16")
    assert lost == quiet
    assert lost
    loud = kp.gradient_norms(network(temperature=1e4, key=3.0, value=2.0), kernel)
    assert balance.queries_lost_to_rounding(loud, "bfloat16") == lost
    assert balance.dead_queries(loud, "bfloat16") == []


def drawn_query_gradients(dtype, apart, scale, draws=12, length=16, width=128):
    """Squared norms of the exact gradient, and of the error of one computed in ``dtype``: means over drawn layers.

    Inputs are ``scale · (common + apart · own)``; the loss is ``⟨R, S⟩``. Both take the rounded inputs and weights.
    """
    rng = np.random.default_rng(0)

    def loss(query, x, key, value, r):
        scores = (x @ query) @ (x @ key).T * jnp.asarray(width**-0.5, x.dtype)
        return jnp.sum((jax.nn.softmax(scores, axis=-1) @ (x @ value)) * r)

    gradient = jax.jit(jax.grad(loss))
    exact, error = [], []
    for _ in range(draws):
        x = scale * (np.sqrt(1 - apart**2) * rng.normal(size=(1, width)) + apart * rng.normal(size=(length, width)))
        weights = rng.normal(size=(2, width, width)) / np.sqrt(width)
        arguments = np.zeros((width, width)), x, *weights, rng.normal(size=(length, width))
        low = [jnp.asarray(a, dtype) for a in arguments]
        right = np.asarray(gradient(*(a.astype(jnp.float64) for a in low)))
        exact.append(np.sum(right**2))
        error.append(np.sum((np.asarray(gradient(*low)).astype(float) - right) ** 2))
    return np.mean(exact), np.mean(error)


@pytest.mark.slow
@pytest.mark.parametrize(("dtype", "alive", "lost"), [("float32", 1e-2, 1e-4), ("bfloat16", 0.3, 0.03)])
def test_the_error_of_low_precision_is_the_predicted_one(dtype, alive, lost):
    """Drawn attention layers; the error over the prediction at inputs and spreads that move it a thousandfold."""
    length, width = 16, 128
    for scale in (1.0, 8.0):
        for apart in (alive, lost):
            with jax.enable_x64(True):
                exact, error = drawn_query_gradients(dtype, apart, scale)
            kernel = scale**2 * (apart**2 * np.eye(length) + (1 - apart**2))
            norms = kp.gradient_norms(kp.Transformer(kp.uniform(length)), kernel, width=width)
            predicted = norms.query_rounding[0] * balance.ROUNDING[dtype] ** 2
            assert 0.5 < np.sqrt(error / predicted) < 2
            assert np.sqrt(exact / norms.query[0]) == pytest.approx(1, rel=0.3)
            assert balance.queries_lost_to_rounding(norms, dtype) == ([1] if error > exact else [])
            assert (error > exact) == (apart == lost)
            # Beside the value gradient, a larger input looks alive.
            if scale == 8 and apart == lost:
                assert balance.dead_queries(norms, dtype) == []
