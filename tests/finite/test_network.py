"""The finite network against a plain numpy one, and against equinox's attention, with the same weights."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import kernelprop as kp
from kernelprop.attention.random_softmax import random_softmax, shaped_attention
from kernelprop.finite import keys
from kernelprop.finite.attention import attention_weights
from kernelprop.finite.network import all_weights, cast, forward, network
from kernelprop.finite.norm import normalise
from kernelprop.finite.patterns import PlainPattern, SoftmaxPattern, patterns
from tests.attention.registry import OPERATORS

F64 = jnp.dtype("float64")


def run(model, width, seed=0, **options):
    """Output, input and weights of one network, in double precision."""
    with jax.enable_x64(True):
        net = cast(network(model, width, **options), F64)
        x = jax.random.normal(jax.random.key(seed + 100), (model.length, width), F64)
        layers = keys.layer_keys(keys.draw_key(keys.root_key(seed), 0), model.depth)
        y, _, trace = jax.jit(lambda x, layers: forward(net, x, layers, keep_weights=True))(x, layers)
        return net, *(jax.tree.map(np.asarray, tree) for tree in (y, x, trace.weights))


def softmax(logits):
    weights = np.exp(logits - logits.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True)


def norm(how, x):
    if how.kind == "layer":
        x = x - x.mean(-1, keepdims=True)
    return x / np.sqrt((x**2).mean(-1, keepdims=True) + how.epsilon)


def numpy_network(model, x, weights, heads, matrices):
    """The network from its formula, layer by layer; ``matrices(layer, x, weights)`` gives ``(H, T, T)``."""
    for layer in range(model.depth):
        w = {name: value[layer] for name, value in weights.items()}
        how = model.norm
        before = (lambda v, how=how: norm(how, v)) if how is not None and how.place == "pre" else (lambda v: v)
        after = (lambda v, how=how: norm(how, v)) if how is not None and how.place == "post" else (lambda v: v)

        def attend(v, w=w, layer=layer):
            values = np.split(v @ w["value"], heads, axis=1)
            mixed = [a @ one for a, one in zip(matrices(layer, v, w), values, strict=True)]
            return np.concatenate(mixed, 1) @ w["output"]

        def mlp(v, w=w):
            hidden = v @ w["mlp_in"] + w.get("mlp_bias_in", 0)
            hidden = np.asarray(model.mlp.activation(hidden))
            if "mlp_gate" in w:
                hidden = hidden * (v @ w["mlp_gate"])
            return hidden @ w["mlp_out"] + w.get("mlp_bias_out", 0)

        a1, b1, a2, b2 = (0.0, 1.0, 0.0, 1.0)
        if model.residual is not None:
            (a1, b1), (a2, b2) = ([v[layer] for v in pair] for pair in (model.residual.attention, model.residual.mlp))
        if model.parallel:
            x = after(a1 * x + b1 * attend(before(x)) + b2 * mlp(before(x)))
            continue
        x = after(a1 * x + b1 * attend(before(x)))
        if model.mlp is not None:
            x = after(a2 * x + b2 * mlp(before(x)))
    return x


def given(model, heads):
    matrices = model.attention.as_matrix()
    if model.attention.depth is None:
        matrices = np.broadcast_to(matrices, (model.depth, *matrices.shape))

    def of_layer(layer, x, w):
        one = matrices[layer]
        one = one[None] if one.ndim == 2 else one
        return np.tile(one, (heads // len(one), 1, 1))

    return of_layer


@pytest.mark.parametrize("name", OPERATORS)
def test_every_given_attention_is_realised_as_its_matrix(name):
    operator = OPERATORS[name]()
    found = patterns(operator)
    pattern, right = found.pattern, operator.as_matrix()
    if isinstance(pattern, PlainPattern):
        np.testing.assert_array_equal(pattern.matrix, right)
        assert (right < 0).any()
        return
    weights = softmax(np.where(pattern.mask, pattern.bias, -np.inf))
    extra = (1,) * (right.ndim - np.ndim(pattern.identity))
    identity, share = (np.reshape(w, np.shape(w) + extra) for w in (pattern.identity, pattern.softmax))
    matrix = identity * np.eye(operator.length) + share * pattern.rescale[..., None] * weights
    np.testing.assert_allclose(matrix, right, rtol=1e-13, atol=1e-15)
    assert found.layered == (operator.depth is not None)
    assert found.heads == operator.heads


@pytest.mark.parametrize(
    ("name", "gradients"), [("espa", False), ("espa", True), ("dense heads", True), ("mix of heads", False)]
)
def test_given_attention_is_applied_to_the_values(name, gradients):
    """The network whose gradients are wanted, with queries and keys, is the same as without."""
    operator = OPERATORS[name]()
    if name == "dense heads":
        operator = kp.dense(np.abs(operator.as_matrix()))
    model = kp.Transformer(operator)
    heads = 2 * (operator.heads or 1)
    _, y, x, weights = run(model, 12, heads=heads, gradients=gradients)
    expected = numpy_network(model, x, weights, heads, given(model, heads))
    np.testing.assert_allclose(y, expected, rtol=1e-12, atol=1e-12 * np.abs(expected).max())


RESIDUAL = kp.Residual(attention=(0.8, 0.6), mlp=([0.5, 0.6, 0.7], 0.9))
BLOCKS = {
    "biases": {"mlp": kp.MLP("tanh", expansion=1.5, gain_in=1.3, gain_out=0.7, bias_in=0.5, bias_out=0.2)},
    "pre": {"mlp": kp.GatedMLP("silu", 2, gain_gate=0.6), "residual": RESIDUAL, "norm": kp.Norm("pre", "layer", 1e-5)},
    "post": {"mlp": kp.MLP("relu", 2), "residual": RESIDUAL, "norm": kp.Norm("post", "rms", 0.1)},
    "parallel": {"mlp": kp.MLP("gelu", 2), "residual": RESIDUAL, "norm": "pre", "parallel": True},
    "parallel, no skip": {"mlp": kp.MLP("gelu", 2), "parallel": True},
}


@pytest.mark.parametrize("name", BLOCKS)
def test_every_block_is_the_formula(name):
    model = kp.Transformer(kp.uniform(5, causal=True), depth=3, **BLOCKS[name])
    _, y, x, weights = run(model, 8, heads=2)
    with jax.enable_x64(True):
        expected = numpy_network(model, x, weights, 2, given(model, 2))
    np.testing.assert_allclose(y, expected, rtol=1e-12, atol=1e-12 * np.abs(expected).max())


def test_gains_multiply_the_weights():
    def weights(gain):
        model = kp.Transformer(kp.identity(2), mlp=kp.MLP("relu", 1, gain_in=gain), gains=kp.Gains(value=gain))
        net = cast(network(model, 4), jnp.dtype("float32"))
        return all_weights(net, keys.root_key(0), jnp.dtype("float32"))

    plain, doubled = weights(1), weights(2)
    for name, factor in (("value", 2), ("output", 1), ("mlp_in", 2), ("mlp_out", 1)):
        np.testing.assert_array_equal(doubled[name], factor * plain[name])


def random_matrices(model, heads, head_width):
    """Softmax attention with random queries and keys from its formula, in numpy."""
    operator = model.attention
    length = model.length

    def of_layer(layer, x, w):
        temperature = 1.0 if model.gains is None else model.gains.temperature[layer]
        out = []
        for head in range(heads):
            columns = slice(head * head_width, (head + 1) * head_width)
            queries, keys_ = x @ w["query"][:, columns], x @ w["key"][:, columns]
            if operator.frequencies is not None:
                queries, keys_ = (turned(side, operator.frequencies) for side in (queries, keys_))
            scale = np.sqrt(head_width) if operator.logit_scale == "sqrt" else head_width
            bias = operator.bias if operator.bias.ndim == 2 else operator.bias[head % len(operator.bias)]
            logits = temperature * operator.tau * queries @ keys_.T / scale + bias
            masked = np.where(operator.mask, 0.0, -np.inf)
            weights = operator.softmax_weight * softmax(logits + masked)
            weights = weights - operator.centre_weight * softmax(np.broadcast_to(bias + masked, (length, length)))
            rescale = 1.0 if operator.rescale is None else operator.rescale[:, None]
            out.append(operator.identity_weight * np.eye(length) + rescale * weights)
        return out

    return of_layer


def turned(x, frequencies):
    """Rotary positions by complex numbers."""
    pairs = x.reshape(len(x), -1, 2)
    angles = np.arange(len(x))[:, None] * np.tile(frequencies, pairs.shape[1] // len(frequencies))
    rotated = (pairs[..., 0] + 1j * pairs[..., 1]) * np.exp(1j * angles)
    return np.stack([rotated.real, rotated.imag], -1).reshape(x.shape)


BIAS = np.random.default_rng(0).normal(size=(2, 5, 5))
RANDOM = {
    "causal": {"causal": True, "tau": 1.7},
    "bias, linear": {"bias": BIAS[0], "mask": [True, True, True, False, True], "logit_scale": "linear", "tau": 3.0},
    "bias a head, rescale": {"bias": BIAS, "rescale": [1.0, 2.0, 0.5, 1.5, 3.0], "query_gain": 1.4, "key_gain": 0.6},
    "rotary, each frequency twice": {"rotary": [0.5]},
}


@pytest.mark.parametrize("name", RANDOM)
def test_random_softmax_is_the_formula(name):
    model = kp.Transformer(random_softmax(5, **RANDOM[name]), depth=2, gains=kp.Gains(query=1.3, temperature=0.9))
    _, y, x, weights = run(model, 8, heads=2)
    expected = numpy_network(model, x, weights, 2, random_matrices(model, 2, 4))
    np.testing.assert_allclose(y, expected, rtol=1e-12, atol=1e-12 * np.abs(expected).max())


def test_shaped_attention_is_the_formula():
    model = kp.Transformer(shaped_attention(5, alpha=0.9, beta=0.7, gamma=0.4, causal=True), depth=2)
    _, y, x, weights = run(model, 8, heads=4)
    expected = numpy_network(model, x, weights, 4, random_matrices(model, 4, 2))
    np.testing.assert_allclose(y, expected, rtol=1e-12, atol=1e-12 * np.abs(expected).max())


def test_queries_can_be_random_under_a_given_bias():
    """``A = D softmax(Q Kᵀ/√d_k + B)`` once the queries have left zero."""
    operator = kp.espa(5, 2)
    model = kp.Transformer(operator)
    _, y, x, weights = run(model, 8, weights={"query": "gaussian"})
    form = operator.softmax_form()

    def matrices(layer, x, w):
        logits = (x @ w["query"]) @ (x @ w["key"]).T / np.sqrt(8) + form.bias[layer] + np.where(form.mask, 0, -np.inf)
        return [form.rescale[layer][:, None] * softmax(logits)]

    np.testing.assert_allclose(y, numpy_network(model, x, weights, 1, matrices), rtol=1e-12, atol=1e-12)


def test_random_softmax_is_equinox_s_attention():
    heads, width, length = 4, 16, 6
    model = kp.Transformer(random_softmax(length, causal=True))
    _, y, x, weights = run(model, width, heads=heads)
    with jax.enable_x64(True):
        layer = eqx.nn.MultiheadAttention(heads, width, dtype=F64, key=jax.random.key(0))
        names = ("query", "key", "value", "output")
        layer = eqx.tree_at(
            lambda m: [getattr(m, f"{name}_proj").weight for name in names],
            layer,
            [jnp.asarray(weights[name][0].T) for name in names],
        )
        x = jnp.asarray(x)
        expected = layer(x, x, x, mask=jnp.tril(jnp.ones((length, length), bool)))
        np.testing.assert_allclose(y, expected, rtol=1e-12, atol=1e-12)


def test_layer_norm_has_the_biased_variance_and_epsilon_under_the_root():
    """Case 37."""
    with jax.enable_x64(True):
        x = np.array([[1.0, 2.0, 4.0]])
        found = normalise(kp.Norm("pre", "layer"), jnp.asarray(x))
        np.testing.assert_allclose(found[0], [-1.0690449676497, -0.267261241912424, 1.33630620956212], rtol=1e-12)
        small = normalise(kp.Norm("pre", "layer", 1e-5), jnp.asarray(1e-3 * x))
        np.testing.assert_allclose(small[0], [-0.392232270276368, -0.098058067569092, 0.49029033784546], rtol=1e-12)


def test_a_token_without_variance():
    """Case 38: LayerNorm with ε gives 0, RMSNorm 1, gradients are finite; LayerNorm without ε is NaN."""
    x = jnp.full((1, 3), 2.0)
    layer = kp.Norm("pre", "layer", 1e-5)
    np.testing.assert_array_equal(normalise(layer, x), np.zeros((1, 3)))
    np.testing.assert_allclose(normalise(kp.Norm("pre", "rms"), x), np.ones((1, 3)), rtol=1e-6)
    gradient = jax.grad(lambda x: jnp.sum(normalise(layer, x) ** 2))(x)
    np.testing.assert_array_equal(gradient, np.zeros((1, 3)))
    assert np.isnan(normalise(kp.Norm("pre", "layer"), x)).all()


def test_a_row_whose_every_key_is_masked_is_zero():
    """Case 9 (and its gradient)."""
    mask = jnp.array([[True, True, False], [True, True, False], [False, False, False]])

    def total(logits):
        weights = attention_weights(logits[None], jnp.zeros((1, 3, 3)), mask[None])[0]
        return jnp.sum(weights * jnp.arange(3.0)[None, :]), weights

    (_, weights), gradient = jax.value_and_grad(total, has_aux=True)(jnp.zeros((3, 3)))
    np.testing.assert_array_equal(weights, [[0.5, 0.5, 0], [0.5, 0.5, 0], [0, 0, 0]])
    assert np.isfinite(gradient).all()
    np.testing.assert_array_equal(gradient[2], np.zeros(3))


def test_structural_zeros_and_their_gradients_are_exact():
    """Case 7: P of E-SPA with γ 1 to 0.2, f = P w, w = (1, 2, 3)."""
    with jax.enable_x64(True):
        form = kp.espa(3, gammas=[1.0, 0.2]).softmax_form()

        def f(logits):
            weights = attention_weights(logits[None], jnp.asarray(form.bias), jnp.asarray(form.mask)[None])
            return weights[0] @ jnp.arange(1.0, 4)

        zeros = jnp.zeros((3, 3))
        np.testing.assert_allclose(f(zeros), [1, 1.51071355133798, 2.09646393665466], rtol=1e-13)
        gradients = jax.jacobian(f)(zeros)
        np.testing.assert_allclose(gradients[1, 1], [-0.249885219817728, 0.249885219817728, 0], rtol=1e-13)
        expected = [-0.384767737341964, -0.0194569922906199, 0.404224729632584]
        np.testing.assert_allclose(gradients[2, 2], expected, rtol=1e-12)


def test_batches_run_by_vmap():
    model = kp.Transformer(random_softmax(4), mlp=kp.MLP("gelu", 2), norm="pre")
    net = cast(network(model, 8), jnp.dtype("float32"))
    layers = keys.layer_keys(keys.root_key(0), 1)
    batch = jax.random.normal(jax.random.key(0), (3, 4, 8))
    together = jax.jit(jax.vmap(lambda x: forward(net, x, layers)[0]))(batch)
    one = jax.jit(lambda x: forward(net, x, layers)[0])(batch[1])
    np.testing.assert_allclose(together[1], one, rtol=1e-5, atol=1e-5)


def test_value_skip_init_keeps_its_skip_apart_from_the_softmax():
    net = network(kp.Transformer(kp.mix(kp.uniform(4), 0.9, 0.3)), 8)
    assert isinstance(net.shared, SoftmaxPattern)
    assert (float(net.shared.identity), float(net.shared.softmax)) == (0.9, 0.3)
    np.testing.assert_allclose(net.shared.rescale, 1)


def test_negative_entries_have_no_queries():
    model = kp.Transformer(kp.espa(4, gammas=[0.1, 0.5], require_nonnegative=False))
    net = network(model, 8, gradients=True)
    assert isinstance(net.blocks.attention, PlainPattern)
    assert net.names == ("value", "output")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"width": 0}, "width: 0 is too small"),
        ({"width": 10, "heads": 4}, "width: 10 does not divide into 4 heads; give head_width"),
        ({"width": 8, "head_width": 3}, "head_width: 3 is no multiple of 4, the features that 2 rotary"),
    ],
)
def test_sizes_that_do_not_fit_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        network(kp.Transformer(random_softmax(4, rotary=[1.0, 0.1])), **options)


def test_heads_and_expansions_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="heads: 3 is no multiple of the 2 heads that the attention has"):
        network(kp.Transformer(kp.dense(np.ones((1, 2, 4, 4)))), 12, heads=3)
    with pytest.raises(ValueError, match=r"mlp: expansion 1\.3 times width 8 is not a whole number of units"):
        network(kp.Transformer(kp.uniform(4), mlp=kp.MLP("relu", 1.3)), 8)
