"""What shaping promises: conditions met, one documented root, targets refused with their ceiling, dtypes kept."""

import time

import jax
import jax.numpy as jnp
import mpmath as mp
import numpy as np
import pytest

from kernelprop.activations import dks, dks_blocks, tat, tat_blocks
from kernelprop.activations.shaping.blocks import compose, local_curvature, local_slope, negative_slope, rectifier_map


def conditions(shaped) -> list[float]:
    """Q(1), Q'(1), C'(1), C''(1) and C(0) by an integration of its own: a dense trapezoidal rule in numpy."""
    x = np.linspace(-12, 12, 4801)
    weight = np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi) * (x[1] - x[0])
    with jax.enable_x64(True):
        rise = jax.vmap(jax.grad(shaped))
        value, slope, bend = (
            np.asarray(f(jnp.asarray(x))) for f in (shaped, rise, jax.vmap(jax.grad(jax.grad(shaped))))
        )
    moments = (value**2, x * value * slope, slope**2, bend**2, value)
    return [float((weight * moment).sum()) for moment in moments]


def test_case_27_an_unreachable_target_is_refused_with_its_ceiling():
    for depth, ceiling in (
        (1, "0.31830988618379"),
        (2, "0.49373109020037"),
        (10, "0.87153551602152"),
        (12, "0.89714805176775"),
    ):
        with pytest.raises(ValueError, match=rf"eta: 0.9 can't be reached by {depth} .* is {ceiling}"):
            tat("leaky_relu", depth)
    assert tat("leaky_relu", 13).parameters["negative_slope"] > 0
    assert compose([(0.0, 1.0)] * 13, lambda c: rectifier_map(0.0, c)) == pytest.approx(0.9070988508, abs=5e-11)


def test_case_28_nonlinear_layers_are_what_counts():
    blocks = [(0.0, 1.0)] * 12
    with pytest.raises(ValueError, match=r"0\.89714805176775"):
        tat_blocks("leaky_relu", blocks)
    assert tat_blocks("leaky_relu", blocks * 2).parameters["negative_slope"] == pytest.approx(
        0.2385026021471218, rel=1e-13
    )
    assert negative_slope(blocks * 2, 0.9) == tat("leaky_relu", 24).parameters["negative_slope"]


def test_case_29_a_skip_is_part_of_the_block_map():
    blocks = [(0.5, 0.5)] * 3
    carried = [compose(blocks[:n], lambda c: rectifier_map(0.0, c)) for n in (1, 2, 3)]
    np.testing.assert_allclose(carried, [0.1591549430918953, 0.2805411589175892, 0.3758659073696712], rtol=1e-15)


def test_case_30_tanh_for_100_layers():
    shaped = dks("tanh", 100)
    expected = (0.0904379454104523, 0.5601066910286308, -0.505004376778794, 14.90252572957815)
    np.testing.assert_allclose(list(shaped.parameters.values()), expected, rtol=1e-11)
    square, radial, slope, _, mean = conditions(shaped)
    np.testing.assert_allclose([square, radial, slope, mean], [1, 1, 1.00406288229992311, 0], rtol=0, atol=1e-11)


def test_case_31_of_two_roots_the_one_with_the_smaller_scale_every_time():
    expected = (0.05764083564929165, 0.5218106575996856, -0.479595487294241, 22.50694641413381)
    first, second = tat("tanh", 100), tat("tanh", 100)
    np.testing.assert_allclose(list(first.parameters.values()), expected, rtol=1e-11)
    assert first.parameters == second.parameters
    np.testing.assert_allclose(conditions(first)[:4], [1, 1, 1, 0.003], rtol=0, atol=1e-11)


@pytest.mark.parametrize("x64", [False, True])
def test_case_32_the_inputs_dtype_is_kept(x64):
    for shaped in (dks("tanh", 100), tat("leaky_relu", 36)):
        with jax.enable_x64(x64):
            for dtype in ("bfloat16", "float32", *(["float64"] if x64 else [])):
                x = jnp.zeros(3, dtype)
                assert shaped(x).dtype == dtype
                assert jax.jit(jax.vmap(jax.grad(shaped)))(x).dtype == dtype
    with jax.enable_x64(True):
        assert float(dks("tanh", 100)(jnp.float64(0))) == pytest.approx(0.04548567069366, abs=1e-10)


def test_square_is_refused_at_once():
    dks("tanh", 8)
    start = time.process_time()
    with pytest.raises(
        ValueError, match=r"square can't be shaped by DKS: no input_scale and input_shift give Q'\(1\) = 1"
    ):
        dks("square", 36)
    assert time.process_time() - start < 1


def test_what_can_not_be_reached_or_does_not_belong_is_refused():
    with pytest.raises(ValueError, match=r"zeta: the target can't be reached by shaping relu; .* ceiling is about"):
        dks("relu", 8)
    with pytest.raises(ValueError, match=r"zeta: 1\.0 can't be reached; the network's slope is at least 1"):
        dks("tanh", 8, zeta=1.0)
    with pytest.raises(ValueError, match=r"tau: -0\.1 can't be reached"):
        tat("tanh", 8, tau=-0.1)
    with pytest.raises(ValueError, match=r"eta: 1\.0 must lie strictly between 0 and 1"):
        tat("leaky_relu", 8, eta=1.0)
    with pytest.raises(ValueError, match=r"tau: 0\.3 was given; a leaky ReLU is shaped by eta"):
        tat("leaky_relu", 36, tau=0.3)
    with pytest.raises(ValueError, match=r"eta: 0\.9 was given; it shapes a leaky ReLU, tanh is shaped by tau"):
        tat("tanh", 36, eta=0.9)
    with pytest.raises(ValueError, match="depth: 0 is too small"):
        dks("tanh", 0)
    with pytest.raises(ValueError, match=r"dks: dks\(tanh\) is shaped already"):
        dks(dks("tanh", 8), 8)


def test_any_function_and_any_scale_of_it_can_be_shaped():
    plain = dks("tanh", 36).parameters
    for factor in (0.01, 1.0, 100.0):
        shaped = dks(lambda x, k=factor: 3 + 2 * jnp.tanh(k * x), 36).parameters
        assert shaped["input_scale"] == pytest.approx(plain["input_scale"] / factor, rel=1e-11)
        assert shaped["input_shift"] == pytest.approx(plain["input_shift"] / factor, rel=1e-11)
        assert shaped["output_scale"] == pytest.approx(plain["output_scale"] / 2, rel=1e-11)
        assert shaped["output_shift"] == pytest.approx(2 * plain["output_shift"] - 3, rel=1e-11)


@pytest.mark.parametrize("name", ["gelu", "gelu_tanh", "softplus", "swish", "sigmoid", "erf", "sin"])
@pytest.mark.parametrize("depth", [12, pytest.param(100, marks=pytest.mark.slow)])
def test_conditions_hold_for_other_functions_and_depths(name, depth):
    square, radial, slope, _, mean = conditions(dks(name, depth, zeta=1.2))
    np.testing.assert_allclose([square, radial, slope, mean], [1, 1, 1.2 ** (1 / depth), 0], rtol=0, atol=1e-10)
    np.testing.assert_allclose(conditions(tat(name, depth, tau=0.5))[:4], [1, 1, 1, 0.5 / depth], rtol=0, atol=1e-10)


def test_block_maps_reach_the_networks_targets():
    blocks = [(0.5, 0.5), (0.8, 0.2), (0.0, 1.0)] * 4
    slope = local_slope(blocks, 1.5)
    assert np.prod([a + b * slope for a, b in blocks]) == pytest.approx(1.5, rel=1e-14)
    assert conditions(dks_blocks("gelu", blocks))[2] == pytest.approx(slope, abs=1e-11)
    curvature = local_curvature(blocks, 0.3)
    # Curvature of the composition by differences of an exact quadratic map with this curvature at 1.
    with mp.workdps(40):
        bend = mp.mpf(curvature)
        network = lambda c: compose(blocks, lambda x: x + bend / 2 * (x - 1) ** 2, c)  # noqa: E731
        step = mp.mpf("1e-12")
        second = (network(1 + step) - 2 * network(mp.mpf(1)) + network(1 - step)) / step**2
    assert float(second) == pytest.approx(0.3, rel=1e-10)
    eta = compose(blocks, lambda c: rectifier_map(negative_slope(blocks, 0.6), c))
    assert eta == pytest.approx(0.6, abs=1e-14)
    with pytest.raises(ValueError, match="no block has a nonlinear branch"):
        local_slope([(1.0, 0.0)], 1.5)


def test_a_shaped_activation_is_an_activation():
    shaped = tat("leaky_relu", 36)
    assert float(shaped.second_moment(jnp.ones(()))) == pytest.approx(1, rel=1e-6)
    with jax.enable_x64(True):
        kernel = shaped.kernel(jnp.ones(3), jnp.full((3, 3), 0.4))
        expected = rectifier_map(shaped.parameters["negative_slope"], 0.4)
        np.testing.assert_allclose(kernel, np.where(np.eye(3) > 0, 1, expected), rtol=1e-15)
