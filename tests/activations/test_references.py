"""Dual kernels against numbers made elsewhere: a table from mpmath, and twelve-digit reference values."""

import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import kernelprop.activations as act
from kernelprop.activations import ACTIVATIONS

TABLE = json.loads(Path(__file__).with_name("dual_references.json").read_text())
# Rounding of c = 0.999999 to a double alone moves an entry by q Kdot 1e-17, relative to Kdot/q up to 3e-14.
ROUNDING = 1e-13

UNIT = {  # c = 0, .5, .9, and variances (1.5, 0.7) with correlation .5
    "relu": (0.15915494309190, 0.30449889052211, 0.45476919942234, 0.31201851394694),
    "erf": (0, 0.21634689593879, 0.40966552939827, 0.21458240485029),
    "gelu": (0.07957747154595, 0.22729491502199, 0.38096887059477, 0.23200797994275),
    "gelu_tanh": (0.07954576516548, 0.22726707642591, 0.38094328722335, 0.23198029407953),
    "tanh": (0, 0.18632441320345, 0.34920335058193, 0.18522037525187),
    "softplus": (0.64973140705874, 0.78007816520694, 0.89213142406875, None),
    "swish": (0.04269222282293, 0.18316966308816, 0.31853842789147, None),
    "sigmoid": (0.25, 0.27142832563171, 0.28891801226034, 0.27149239683617),
}
SQUARES = {
    "relu": 0.5,
    "gelu": 0.42522148257030,
    "gelu_tanh": 0.42519371103310,
    "tanh": 0.39429449039784,
    "softplus": 0.92124590885930,
    "swish": 0.35577551981735,
    "sigmoid": 0.29337903585809,
}


# Those without a closed form share their code: one of them by default, for the seconds that they compile.
SLOW = {"gelu_tanh", "silu", "softplus", "sigmoid"}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name in SLOW else name for name in ACTIVATIONS]
)
def test_kernels_agree_with_mpmath_for_every_variance_and_correlation(name):
    q1, q2, c, value, slope = np.array(TABLE[name]).T
    for kernel, exact in ((act.dual(name), value), (act.dual_derivative(name), slope)):
        bound = np.sqrt(kernel(q1, q1, 1.0) * kernel(q2, q2, 1.0))
        assert (np.abs(kernel(q1, q2, c) - exact) <= ROUNDING * bound).all()


@pytest.mark.parametrize("name", UNIT)
def test_kernels_agree_with_the_reference_values(name):
    *unit, mixed = UNIT[name]
    kernel = act.dual(name)
    np.testing.assert_allclose(kernel(1.0, 1.0, [0, 0.5, 0.9]), unit, rtol=0, atol=6e-15)
    if mixed is not None:
        assert kernel(1.5, 0.7, 0.5) == pytest.approx(mixed, rel=0, abs=6e-15)
    if name in SQUARES:
        assert kernel(1.0, 1.0, 1.0) == pytest.approx(SQUARES[name], rel=0, abs=6e-15)


def test_case_33_the_two_gelus_are_two():
    names = ("gelu", "gelu_tanh")
    squares = [float(act.dual(name)(1.0, 1.0, 1.0)) for name in names]
    ratios = [float(act.dual(name)(1.0, 1.0, 0.0)) / square for name, square in zip(names, squares, strict=True)]
    np.testing.assert_allclose(squares, [0.4252214825702987, 0.4251937110330995], rtol=1e-14)
    np.testing.assert_allclose(ratios, [0.1871435823630847, 0.1870812363903576], rtol=1e-14)
    with jax.enable_x64(True):
        mean = act.activation("gelu").mean(jnp.ones(1))
    assert float(mean[0]) == pytest.approx(0.2820947917738781, rel=1e-15)


def test_the_chaotic_phase_of_tanh_is_not_hidden():
    # A 160-node rule gives 1.60 at sigma = 10, where 5.31 is right; over sigma it tends to 0.5319.
    sigma = np.array([10.0, 30.0])
    growth = sigma * act.dual_derivative("tanh")(sigma**2, sigma**2, 1.0)
    assert 10 * growth[0] == pytest.approx(5.310678, rel=1e-6)
    # Limit: integral of tanh'^2 over sqrt(2 pi), which is (4/3)/sqrt(2 pi); the next term falls as 1/sigma^2.
    limit = 4 / 3 / np.sqrt(2 * np.pi)
    assert limit == pytest.approx(0.5319, abs=1e-4)
    assert (limit - growth[0]) / (limit - growth[1]) == pytest.approx(9, rel=0.02)


def test_the_iterated_relu_map():
    with jax.enable_x64(True):
        phi = act.activation("relu")
        step = jax.jit(lambda c: 2 * phi.dual(jnp.ones_like(c), jnp.ones_like(c), c))
        c, seen = jnp.zeros(()), {}
        for layer in range(1, 101):
            c = step(c)
            seen[layer] = 1 - float(c)
    # 1 - c is carried with an absolute error of an ulp a layer.
    assert seen[10] == pytest.approx(0.128464483978, abs=1e-12)
    assert seen[100] == pytest.approx(0.00357685331605, abs=1e-13)
