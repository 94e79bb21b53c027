"""Distributions of weights against their exact moments; keys."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import kernelprop as kp
from kernelprop.attention.random_softmax import random_softmax
from kernelprop.finite import families, keys, threefry
from kernelprop.finite.families import Shape
from kernelprop.finite.network import cast, layer_weights, network
from kernelprop.finite.orthogonal import Orthogonal, haar
from kernelprop.finite.scheme import FAMILIES, weight_families

SHAPE = Shape(24, 48, heads=4)
F32 = jnp.dtype("float32")


def draws(family, shape=SHAPE, count=400, seed=0):
    sample = jax.jit(jax.vmap(lambda key: family.draw(key, shape, F32)))
    return np.asarray(sample(jax.random.split(jax.random.key(seed), count)), np.float64)


FAMILY_CASES = {
    **FAMILIES,
    "xavier head": families.Xavier("head"),
    "xavier packed": families.Xavier("packed"),
    "orthogonal per head": Orthogonal(per_head=True),
    "orthogonal unscaled": Orthogonal(rescale=False),
}


@pytest.mark.parametrize("name", FAMILY_CASES)
def test_entries_have_the_stated_variance(name):
    family = FAMILY_CASES[name]
    matrices = draws(family)
    stated = family.variance(SHAPE)
    # Independent draws of the mean square of a matrix: their standard error bounds what the check can see.
    squares = (matrices**2).mean((1, 2))
    stderr = squares.std(ddof=1) / np.sqrt(len(squares))
    assert abs(squares.mean() - stated) <= 4 * stderr + 1e-7 * stated, (squares.mean(), stated, stderr)
    means = matrices.mean((1, 2))
    assert abs(means.mean()) <= 4 * means.std() / np.sqrt(len(means)) + 1e-12
    if stated:
        assert abs(squares.mean() - 1.02 * stated) > 4 * stderr, "2 % would not have been seen"


def test_fan_out_is_counted_as_chosen():
    """Case 43: packed queries, keys and values have half the variance of separate square ones."""
    square = Shape(512, 512, heads=8)
    assert families.Xavier("joint").variance(square) == 1 / 512
    assert families.Xavier("packed").variance(square) == 1 / 1024
    assert families.Xavier("head").variance(square) == 2 / (512 + 64)
    # A weight that no heads share has one fan-out.
    assert families.Xavier("packed").variance(Shape(512, 2048)) == 2 / 2560


def test_packed_weights_shrink_a_deep_value_path():
    """Case 43 through a network of 12 layers, A = I; separate square weights would leave 1."""
    right = 2.44140625e-4
    model = kp.Transformer(kp.identity(2), depth=12)
    found = kp_simulate(model, width=512, draws=12, weights={"value": families.Xavier("packed")})
    mean, stderr = found.diagonal.mean[12].mean(), found.diagonal.stderr[12].max()
    assert stderr < 0.2 * right
    assert abs(mean - right) < 5 * stderr
    assert abs(mean - 2 * right) > 5 * stderr


def test_a_cut_without_its_variance_restored_would_shrink_a_deep_value_path():
    """Case 45."""
    assert families.TRUNCATED_STD == 0.8796256610342397504
    assert abs(families.TRUNCATED_STD**2 - 0.7737413035499232472) < 1e-15
    model = kp.Transformer(kp.identity(2), depth=12, gains=kp.Gains())
    weights = {"value": "truncated"}
    restored = kp_simulate(model, width=256, draws=40, weights=weights)
    cut = kp.Transformer(kp.identity(2), depth=12, gains=kp.Gains(value=families.TRUNCATED_STD))
    uncompensated = kp_simulate(cut, width=256, draws=40, weights=weights)
    for found, right in ((restored, 1.0), (uncompensated, 0.0460414899854968)):
        mean, stderr = found.diagonal.mean[12].mean(), found.diagonal.stderr[12].max()
        assert stderr < 0.1 * right
        assert abs(mean - right) < 4 * stderr
    assert np.abs(draws(families.Truncated())).max() <= 2 / np.sqrt(24) / families.TRUNCATED_STD * (1 + 1e-6)


def kp_simulate(model, **options):
    from kernelprop.finite.simulation import simulate

    return simulate(model, np.eye(model.length), key=3, **options)


def test_orthogonal_weights_are_uniform_over_rotations_and_reflections():
    """Case 46; raw QR has E Q_00 = −2/π and one sign of the determinant, Q S Q has E tr² of 1.98."""
    count = 20_000
    matrices = np.asarray(
        jax.jit(jax.vmap(lambda k: haar(k, 2, 2, F32)))(jax.random.split(jax.random.key(1), count)), np.float64
    )
    np.testing.assert_allclose(matrices @ np.swapaxes(matrices, 1, 2) - np.eye(2), 0, atol=1e-6)
    numbers = {
        "Q_00": (matrices[:, 0, 0], 0.0),
        "Q_00²": (matrices[:, 0, 0] ** 2, 0.5),
        "tr²": (np.trace(matrices, axis1=1, axis2=2) ** 2, 1.0),
        "det": (np.linalg.det(matrices), 0.0),
    }
    for name, (values, right) in numbers.items():
        stderr = values.std(ddof=1) / np.sqrt(count)
        assert abs(values.mean() - right) < 4 * stderr, (name, values.mean(), right, stderr)
    # The faulty values are tens of standard errors away.
    assert abs(numbers["tr²"][0].mean() - 1.98) > 20 * numbers["tr²"][0].std() / np.sqrt(count)


@pytest.mark.parametrize(("rows", "columns", "unscaled"), [(64, 256, 0.25), (256, 64, 1.0)])
def test_rectangular_orthogonal_weights_keep_the_mean_square(rows, columns, unscaled):
    """Case 47: with the rescale 1 and 1, without it 0.25 and 1."""
    for rescale, right in ((True, 1.0), (False, unscaled)):
        matrix = draws(Orthogonal(rescale=rescale), Shape(rows, columns), count=1)[0]
        # E over uniform inputs of q_out/q_in is ‖W‖²_F / columns · 1, exactly, for orthonormal rows or columns.
        assert np.sum(matrix**2) / columns == pytest.approx(right, rel=1e-6)


def test_heads_drawn_apart_are_orthogonal_each_on_its_own():
    matrix = draws(Orthogonal(per_head=True), Shape(8, 16, heads=4), count=1)[0]
    grams = [head.T @ head for head in np.split(matrix, 4, axis=1)]
    np.testing.assert_allclose(grams, np.broadcast_to(np.eye(4), (4, 4, 4)), atol=1e-6)
    assert np.abs(matrix[:, :4].T @ matrix[:, 4:8]).max() > 0.05


def test_the_written_out_generator_gives_the_numbers_of_jax():
    for x64, dtype in ((False, "float32"), (True, "float32"), (True, "float64")):
        with jax.enable_x64(x64):
            key = jax.random.key(11)
            own = jax.jit(lambda key, d=dtype: threefry.normal(key, (7, 5, 3), jnp.dtype(d)))(key)
            assert own.dtype == dtype
            np.testing.assert_array_equal(own, jax.random.normal(key, (7, 5, 3), dtype))


def test_cut_normal_numbers_have_their_variance():
    values = np.asarray(threefry.truncated_normal(jax.random.key(0), 2.0, (200_000,), F32), np.float64)
    assert np.abs(values).max() <= 2 + 1e-6
    stderr = np.std(values**2) / np.sqrt(len(values))
    assert abs(np.mean(values**2) - families.TRUNCATED_STD**2) < 4 * stderr
    assert abs(np.mean(values**2) - 1) > 40 * stderr


def test_queries_and_keys_are_independent():
    """Case 48: X = 8 I, d = d_k = 64: every logit has mean 0 and variance 1; a shared key gives 8 on the diagonal."""
    model = kp.Transformer(random_softmax(64))
    net = cast(network(model, 64), F32)
    sample = jax.jit(lambda key: layer_weights(net, net.block(net.blocks), key, F32))
    logits = []
    for key in jax.random.split(jax.random.key(0), 40):
        drawn = sample(keys.layer_keys(key, 1)[0])
        logits.append(np.asarray(8 * drawn["query"] @ (8 * drawn["key"]).T / 8, np.float64))
    diagonal = np.diagonal(logits, axis1=1, axis2=2)
    stderr = 1 / np.sqrt(diagonal.size)
    assert abs(diagonal.mean()) < 4 * stderr
    assert abs(np.var(logits) - 1) < 0.05
    shared = np.asarray(8 * drawn["query"] @ drawn["query"].T)
    assert np.diagonal(shared).mean() > 7


def test_every_weight_layer_and_draw_has_a_key_of_its_own():
    root = keys.root_key(0)
    seen = set()
    for draw in range(3):
        one = keys.draw_key(root, draw)
        for purpose in (keys.INPUT, keys.POSITIONS, keys.COTANGENT):
            seen.add(tuple(np.asarray(jax.random.key_data(keys.purpose_key(one, purpose))).tolist()))
        for layer in keys.layer_keys(one, 3):
            for name in keys.WEIGHT_TAGS:
                seen.add(tuple(np.asarray(jax.random.key_data(keys.weight_key(layer, name))).tolist()))
    layer = jax.random.fold_in(jax.random.fold_in(one, keys.LAYERS), 3)
    hand = jax.random.fold_in(layer, keys.WEIGHT_TAGS["key"])
    assert keys.weight_key(keys.layer_keys(one, 3)[2], "key") == hand
    assert len(seen) == 3 * (3 + 3 * len(keys.WEIGHT_TAGS))


@pytest.mark.parametrize("seed", [2**32, 2**32 + 7, -1])
def test_seeds_that_would_alias_are_refused(seed):
    """Case 49."""
    with pytest.raises(ValueError, match=r"key: seed -?\d+ is outside 0…4294967295"):
        keys.root_key(seed)


def test_the_ends_of_the_seeds_are_told_apart_whatever_the_flag():
    def numbers(seed, x64):
        with jax.enable_x64(x64):
            return keys.describe(keys.root_key(seed)).tolist()

    found = [numbers(seed, x64) for seed in (0, 7, 2**32 - 1) for x64 in (False, True)]
    assert found[::2] == found[1::2]
    assert len({tuple(one) for one in found}) == 3


def test_keys_of_either_kind_are_accepted_and_others_refused():
    with jax.enable_x64(True):
        assert keys.describe(keys.root_key(jax.random.PRNGKey(5))).tolist() == [0, 5]
        assert keys.describe(keys.root_key(jax.random.key(5))).tolist() == [0, 5]
        assert keys.root_key(jax.random.key(5, impl="rbg")).dtype == jax.random.key(0, impl="threefry2x32").dtype
        with pytest.raises(ValueError, match="one JAX key is wanted, an array"):
            keys.root_key(jax.random.split(jax.random.key(0), 2))
        with pytest.raises(ValueError, match="a JAX key is wanted, an array"):
            keys.root_key(jnp.zeros(3))
    with pytest.raises(ValueError, match="a seed"):
        keys.root_key(1.5)
    with pytest.raises(ValueError, match="a seed"):
        keys.root_key(True)


def test_unknown_weights_are_refused_by_name():
    with pytest.raises(ValueError, match="weights: 'normal' is unknown; use gaussian, orthogonal"):
        weight_families("normal", True)
    with pytest.raises(ValueError, match="there is no weight 'keys'; the names are query, key"):
        weight_families({"keys": "gaussian"}, True)
    with pytest.raises(ValueError, match="fan_out 'all' is unknown"):
        families.Xavier("all")


def test_queries_are_zero_under_given_attention_and_random_otherwise():
    assert weight_families("orthogonal", random_queries=False)["query"] == families.Zero()
    assert weight_families("orthogonal", random_queries=True)["query"] == Orthogonal()
    assert weight_families({"query": "gaussian"}, random_queries=False)["query"] == families.Gaussian()
