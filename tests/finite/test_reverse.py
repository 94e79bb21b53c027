"""The hand-written reverse scan against automatic differentiation, and small cases by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import kernelprop as kp
from kernelprop.attention.random_softmax import random_softmax
from kernelprop.finite import keys
from kernelprop.finite.network import all_weights, apply_layer, cast, forward, network
from kernelprop.finite.products import Products, squared_norm_of_product
from kernelprop.finite.reverse import gradient_norms, layer_norms

F32, F64 = jnp.dtype("float32"), jnp.dtype("float64")
LENGTH, WIDTH, DEPTH = 5, 12, 2

MODELS = {
    "given attention": lambda: kp.Transformer(
        kp.espa(LENGTH, DEPTH, gamma=0.2),
        mlp=kp.MLP("gelu", 2, bias_in=0.1),
        residual=kp.Residual((0.8, 0.6), (0.8, 0.6)),
        norm=kp.Norm("pre", "layer", 1e-5),
        gains=kp.Gains(2.0, 0.5, 1.5, 0.7, 1.3),
    ),
    "random attention": lambda: kp.Transformer(
        random_softmax(LENGTH, causal=True, rotary=[1.0, 0.1]),
        depth=DEPTH,
        mlp=kp.GatedMLP("silu", 2),
        residual=kp.Residual((1, 1), (1, 1)),
        norm="post",
    ),
    "value skip": lambda: kp.Transformer(kp.mix(kp.uniform(LENGTH), 0.9, 0.5), depth=DEPTH, mlp=kp.MLP("tanh", 1)),
}


@pytest.mark.parametrize("name", MODELS)
def test_the_reverse_scan_is_the_gradient_of_the_unrolled_network(name):
    with jax.enable_x64(True):
        net = cast(network(MODELS[name](), WIDTH, heads=3, gradients=True), F64)
        draw = keys.draw_key(keys.root_key(3), 0)
        weights = jax.jit(lambda key: all_weights(net, key, F64))(draw)
        x, loss = (jax.random.normal(jax.random.key(k), (LENGTH, WIDTH), F64) for k in (1, 2))

        def unrolled(weights, x):
            for layer in range(DEPTH):
                block, own = (jax.tree.map(lambda leaf, i=layer: leaf[i], tree) for tree in (net.blocks, weights))
                x = apply_layer(net, block, Products(own), x)
            return jnp.sum(loss * x)

        gradients, below = jax.jit(jax.grad(unrolled, argnums=(0, 1)))(weights, x)

        @jax.jit
        def by_hand(x, draw):
            # Forward from keys; back from keys, each layer's weights drawn again.
            layers = keys.layer_keys(draw, DEPTH)
            _, _, trace = forward(net, x, layers, keep_inputs=True)
            return gradient_norms(net, layers, trace.inputs, loss)

        norms, found_below = by_hand(x, draw)
        np.testing.assert_allclose(found_below, below, rtol=1e-10, atol=1e-12)
        assert set(norms) == set(net.names)
        for weight, norm in norms.items():
            right = np.sum(np.asarray(gradients[weight]) ** 2, axis=(1, 2))
            np.testing.assert_allclose(norm, right, rtol=1e-10, atol=1e-20, err_msg=weight)
        if name != "random attention":
            assert np.all(np.asarray(norms["key"]) == 0)
        assert np.all(np.asarray(norms["query"]) > 0)


def test_gradients_beyond_single_precision_have_their_norms():
    """Cotangents of 2^±90 in float32, whose squares have no number there; a power of two changes no digit."""
    with jax.enable_x64(True):
        net = cast(network(kp.Transformer(kp.espa(LENGTH, DEPTH, gamma=0.2)), WIDTH, gradients=True), F32)
        layers = keys.layer_keys(keys.root_key(3), DEPTH)
        x, loss = (jax.random.normal(jax.random.key(k), (LENGTH, WIDTH), F32) for k in (1, 2))
        inputs = forward(net, x, layers, keep_inputs=True)[2].inputs
        norms_of = jax.jit(lambda loss: gradient_norms(net, layers, inputs, loss))
        plain, below = norms_of(loss)
        for power in (-90, 90):
            found, found_below = norms_of(loss * 2.0**power)
            np.testing.assert_array_equal(found_below, below * np.float32(2.0**power))
            for name, norm in plain.items():
                np.testing.assert_array_equal(found[name], norm * 4.0**power)
        assert all(np.all(norm == 0) for norm in norms_of(0 * loss)[0].values())
        assert np.all(np.isnan(norms_of(loss * np.float32(np.inf))[0]["value"]))


@pytest.mark.parametrize(("rows", "fan_in", "fan_out"), [(3, 40, 50), (60, 4, 5)])
def test_both_ways_to_a_squared_norm_agree(rows, fan_in, fan_out):
    generator = np.random.default_rng(0)
    x, g = generator.normal(size=(rows, fan_in)), generator.normal(size=(rows, fan_out))
    with jax.enable_x64(True):
        found = squared_norm_of_product(jnp.asarray(x), jnp.asarray(g))
    np.testing.assert_allclose(found, np.sum((x.T @ g) ** 2), rtol=1e-13)


def jacobian_norms(x, queries=1.0, keys_=1.0):
    """Squared Frobenius norms of the Jacobian of one attention layer, W = I, by a cotangent for every output."""
    x = np.asarray(x, np.float64)
    length, width = x.shape
    with jax.enable_x64(True):
        net = cast(network(kp.Transformer(random_softmax(length)), width), F64)
        eye = jnp.eye(width)
        weights = {"query": queries * eye, "key": keys_ * eye, "value": eye, "output": eye}
        block = jax.tree.map(lambda leaf: leaf[0], net.blocks)

        @jax.jit
        @jax.vmap
        def pull(cotangent):
            return layer_norms(net, block, weights, jnp.asarray(x), cotangent)[1]

        return {name: np.asarray(v) for name, v in pull(jnp.eye(length * width).reshape(-1, length, width)).items()}


def test_equal_rows_have_no_query_and_key_gradients():
    """Case 58 (a)."""
    norms = jacobian_norms([[1.0, 2.0]] * 3)
    assert np.all(norms["query"] < 1e-30)
    assert np.all(norms["key"] < 1e-30)
    assert norms["value"].sum() == pytest.approx(30, rel=1e-13)


def test_the_gradients_of_a_scalar_sequence():
    """Case 58 (b), (c), (d)."""
    norms = jacobian_norms([[1.0], [2.0]])
    for name in ("query", "key"):
        np.testing.assert_allclose(np.sqrt(norms[name]), [0.196611933241482, 0.209987170807013], rtol=1e-12)
    np.testing.assert_allclose(np.sqrt(norms["value"]), [1.73105857863, 1.88079707797788], rtol=1e-11)
    zero = jacobian_norms([[1.0], [2.0]], queries=0.0)
    np.testing.assert_allclose(np.sqrt(zero["query"]), [0.25, 0.5], rtol=1e-14)
    np.testing.assert_array_equal(zero["key"], 0)
    near = jacobian_norms([[1.0], [1.001]])
    np.testing.assert_allclose(np.sqrt(near["query"]), [2.4999993750001e-7, 2.50249937312323e-7], rtol=1e-8)


def test_the_gradients_of_two_features():
    """Case 58 (e)."""
    norms = jacobian_norms([[1.0, 0.0], [1.0, 1.0]])
    assert norms["query"].sum() == pytest.approx(0.08017104200256044, rel=1e-12)
    assert norms["key"].sum() == pytest.approx(0.08017104200256044, rel=1e-12)
    assert norms["value"].sum() == pytest.approx(5.397161065912888, rel=1e-12)
