"""Whole blocks against closed forms, and against the recursion written out in numpy."""

import jax
import numpy as np
import pytest

import kernelprop as kp
from kernelprop.layers import residual


def relu_map(kernel):
    """E[φ(u)φ(v)] of the ReLU, the arc-cosine formula written out."""
    q = np.sqrt(np.diag(kernel))
    c = np.clip(kernel / np.outer(q, q), -1, 1)
    return np.outer(q, q) * (np.sqrt(1 - c**2) + c * (np.pi - np.arccos(c))) / (2 * np.pi)


def normalised(kernel, epsilon=0.0):
    q = np.sqrt(np.diag(kernel) + epsilon)
    return kernel / np.outer(q, q)


def positive(length, seed=0):
    root = np.random.default_rng(seed).normal(size=(length, length + 2))
    return root @ root.T / length


# Case 39.
@pytest.mark.parametrize(
    ("place", "branch", "final"),
    [("pre", 1.0, 49.0), ("pre", 48**-0.5, 2.0), ("post", 1.0, 1.0)],
)
def test_growth_of_the_residual_stream(place, branch, final):
    weights = kp.Residual(attention=(1, branch), mlp=(1, branch))
    model = kp.Transformer(kp.identity(4), 24, kp.MLP("linear"), weights, place)
    np.testing.assert_allclose(kp.propagate(model, np.eye(4)).diagonal[-1], final, rtol=1e-12)


# Case 40.
def test_skips_of_one_over_root_two():
    half = 0.5**0.5
    model = kp.Transformer(kp.uniform(4), residual=kp.Residual(attention=(half, half)))
    np.testing.assert_allclose(kp.propagate(model, np.eye(4)).kernels[-1], np.eye(4) / 2 + 1 / 8, atol=1e-15)


# Case 41: with a skip and no MLP the output is Z, once.
def test_without_an_mlp_the_block_is_its_attention_sublayer():
    model = kp.Transformer(kp.uniform(2), residual=residual.plain())
    np.testing.assert_allclose(kp.propagate(model, np.eye(2)).kernels[-1], [[1.5, 0.5], [0.5, 1.5]], atol=1e-15)


# Case 29, as composition: C(c) in the branch, the sum behind it.
def test_pre_activation_residual_map():
    half = 0.5**0.5
    model = kp.Transformer(kp.identity(2), 3, kp.MLP("relu", gain_out=2**0.5), kp.Residual((1.0, 0.0), (half, half)))
    correlations = kp.propagate(model, np.eye(2)).mean_correlation
    np.testing.assert_allclose(
        correlations[1:], [0.1591549430918953, 0.2805411589175892, 0.3758659073696712], rtol=1e-12
    )


@pytest.mark.parametrize("place", [None, "pre", "post"])
@pytest.mark.parametrize("parallel", [False, True])
def test_the_block_is_the_recursion_written_out(place, parallel):
    length, epsilon = 6, 0.01
    rng = np.random.default_rng(3)
    matrices = rng.random((2, 3, length, length))
    matrices /= matrices.sum(-1, keepdims=True)
    weights = kp.Residual(attention=([0.7, 0.9], [0.5, 0.4]), mlp=(0.8, [0.6, 0.3]))
    gains = kp.Gains(value=1.3, output=[0.7, 0.8])
    mlp = kp.MLP("relu", gain_in=1.2, gain_out=1.4, bias_in=0.3, bias_out=0.2)
    norm = None if place is None else kp.Norm(place, epsilon=epsilon)
    model = kp.Transformer(matrices, mlp=mlp, residual=weights, norm=norm, gains=gains, parallel=parallel)

    def before(kernel):
        return normalised(kernel, epsilon) if place == "pre" else kernel

    def after(kernel):
        return normalised(kernel, epsilon) if place == "post" else kernel

    def branch(kernel):
        return 1.4**2 * relu_map(1.2**2 * kernel + 0.3) + 0.2

    kernel = positive(length)
    expected = [kernel]
    for layer in range(2):
        (a1, b1), (a2, b2) = ((0.7, 0.5), (0.8, 0.6)) if layer == 0 else ((0.9, 0.4), (0.8, 0.3))
        gain = (1.3 * (0.7, 0.8)[layer]) ** 2
        attended = gain * np.mean([a @ before(kernel) @ a.T for a in matrices[layer]], axis=0)
        if parallel:
            kernel = after(a1**2 * kernel + b1**2 * attended + b2**2 * branch(before(kernel)))
        else:
            middle = after(a1**2 * kernel + b1**2 * attended)
            kernel = after(a2**2 * middle + b2**2 * branch(before(middle)))
        expected.append(kernel)
    np.testing.assert_allclose(kp.propagate(model, positive(length)).kernels, expected, rtol=1e-12)


def test_a_gated_mlp_multiplies_the_kernels_of_its_branches():
    kernel = positive(5)
    model = kp.Transformer(kp.identity(5), mlp=kp.GatedMLP("relu", gain_in=1.1, gain_gate=0.9, gain_out=1.3))
    expected = 1.3**2 * relu_map(1.1**2 * kernel) * 0.9**2 * kernel
    np.testing.assert_allclose(kp.propagate(model, kernel).kernels[-1], expected, rtol=1e-12)


def test_the_final_norm_acts_on_the_last_depth_alone():
    plain = kp.Transformer(kp.espa(4, 3), residual=residual.plain(), norm="pre")
    final = kp.Transformer(kp.espa(4, 3), residual=residual.plain(), norm=kp.Norm("pre", final=True))
    without, with_final = (kp.propagate(m, positive(4)).kernels for m in (plain, final))
    np.testing.assert_allclose(with_final[:3], without[:3], rtol=1e-13)
    np.testing.assert_allclose(with_final[3], normalised(without[3]), rtol=1e-12)


def test_positions_add_to_the_input():
    positions = kp.kernels.exponential(4, 0.5)
    model = kp.Transformer(kp.uniform(4, causal=True), positions=positions)
    evolution = kp.propagate(model, np.eye(4))
    np.testing.assert_allclose(evolution.kernels[0], np.eye(4) + positions, atol=1e-15)


def test_the_norm_keeps_the_digits_of_a_collapsing_kernel():
    """Attention alone and norms on equal norms: r after L layers is 3·0.9^{2L}, as without norms (case 57)."""
    model = kp.Transformer(kp.mix(kp.uniform(4), 0.9, 0.1), 150, norm="post")
    evolution = kp.propagate(model, np.eye(4), keep="last")
    # Each norm rescales the kernel by its diagonal, the common and the centred part alike.
    share = 0.9 ** (2 * np.arange(151)) * 3
    np.testing.assert_allclose(evolution.rank_residual**2, share / (share + 1), rtol=1e-10)


def test_a_zero_position_is_refused_by_a_norm_without_epsilon():
    kernel = np.diag([1.0, 0.0, 1.0])
    with pytest.raises(ValueError, match="position 1 is zero, and a norm with epsilon=0"):
        kp.propagate(kp.Transformer(kp.identity(3), norm="pre"), kernel)
    evolution = kp.propagate(kp.Transformer(kp.identity(3), norm=kp.Norm("post", epsilon=1e-5)), kernel)
    np.testing.assert_allclose(evolution.diagonal[-1], [1 / 1.00001, 0, 1 / 1.00001], rtol=1e-12)


def test_a_zero_position_passes_an_mlp():
    kernel = np.diag([1.0, 0.0, 2.0])
    model = kp.Transformer(kp.identity(3), mlp=kp.MLP("sigmoid"))
    evolution = kp.propagate(model, kernel)
    # φ(0) = 1/2 there, whatever the other: K = E φ(u)/2.
    np.testing.assert_allclose(evolution.kernels[-1][1], [0.25, 0.25, 0.25], atol=1e-14)


@pytest.mark.parametrize("name", ["gelu", *(pytest.param(n, marks=pytest.mark.slow) for n in ("relu", "tanh", "erf"))])
def test_float32_is_close_to_float64_through_mlps(name):
    model = kp.Transformer(kp.espa(32, 6), mlp=kp.MLP(name, gain_out=1.4), residual=residual.normalised(0.6))
    exact = kp.propagate(model, np.eye(32), "last").kernels
    single = kp.propagate(model, np.eye(32), "last", dtype="float32").kernels
    np.testing.assert_allclose(single, exact, atol=2e-5)


def test_a_sweep_over_numbers_compiles_once():
    from kernelprop import infinite

    def run(value):
        model = kp.Transformer(
            kp.espa(8, 3, gamma=0.01 + value),
            mlp=kp.MLP("relu", gain_in=1 + value),
            residual=kp.Residual((1, value), (1, value)),
            gains=kp.Gains(value=1 + value),
        )
        return kp.propagate(model, np.eye(8), "last")

    run(0.1)
    before = infinite._scan._cache_size()
    for value in (0.2, 0.3):
        run(value)
    assert infinite._scan._cache_size() == before


@pytest.mark.slow  # compiles its way through every layer's derivative
def test_the_engine_can_be_differentiated_by_hand():
    """d(mean correlation)/dα through the layer maps equals a finite difference."""
    from kernelprop.layers import block
    from kernelprop.split_kernel import split

    with jax.enable_x64(True):

        def final(scale):
            model = kp.Transformer(kp.uniform(4, causal=True), 1, kp.MLP("gelu"), residual.plain(), "pre")
            layer = model.block(jax.tree.map(lambda leaf: jax.numpy.asarray(leaf)[0], model.layered()))
            return block.forward(layer, split(scale * jax.numpy.asarray(positive(4)))).moments()["mean_correlation"]

        slope = jax.grad(final)(1.0)
        step = 1e-5
        difference = (final(1 + step) - final(1 - step)) / (2 * step)
    np.testing.assert_allclose(slope, difference, rtol=1e-7, atol=1e-11)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: kp.MLP("rlu"), "rlu"),
        (lambda: kp.MLP("relu", expansion=0), "expansion is 0; it must be positive"),
        (lambda: kp.MLP("relu", bias_in=-1), "mlp: bias_in: -1 is negative"),
        (lambda: kp.MLP("relu", gain_in=np.nan), "mlp: gain_in: nan"),
        (lambda: kp.Norm("inside"), "place 'inside' is unknown; use 'pre' or 'post'"),
        (lambda: kp.Norm("pre", "batch"), "kind 'batch' is unknown"),
        (lambda: kp.Norm("pre", epsilon=-1), "epsilon is -1"),
        (lambda: kp.Transformer(kp.identity(2), mlp="relu"), "mlp: a kp.MLP or kp.GatedMLP is wanted"),
        (lambda: kp.Transformer(kp.identity(2), norm=1), "norm: a kp.Norm"),
        (lambda: kp.Transformer(kp.identity(2), cross_attention=True), "cross_attention is not supported: describe"),
        (lambda: kp.Transformer(kp.identity(2), mixture_of_experts=4), "mixture_of_experts is not supported"),
        (lambda: kp.Transformer(kp.identity(2), colour="red"), "colour is not supported"),
        (lambda: kp.Transformer(kp.identity(2), positions=np.eye(3)), r"positions: shape \(3, 3\) does not fit 2"),
        (lambda: kp.Transformer(kp.identity(2), 3, kp.MLP("relu", gain_in=[1, 2])), "mlp: gain_in: 2 values for 3"),
        (lambda: kp.Transformer(kp.identity(2), 3, gains=kp.Gains(key=[1, 2])), "gains: key: 2 values for 3"),
    ],
)
def test_bad_descriptions_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
