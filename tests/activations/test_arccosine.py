"""The arc-cosine and its relatives against mpmath, and where their coefficients come from."""

import jax
import jax.numpy as jnp
import mpmath as mp
import numpy as np
import pytest

from kernelprop.activations import arccosine


def chebyshev_monomials(degree: int) -> list[float]:
    """asin(sqrt z)/sqrt z on [0, 1/2]: truncated Chebyshev series, as powers of t = 4z - 1."""
    with mp.workdps(40):
        count = 4 * (degree + 1)
        angles = [mp.pi * (k + mp.mpf(1) / 2) / count for k in range(count)]
        roots = [mp.sqrt((mp.cos(angle) + 1) / 4) for angle in angles]
        values = [mp.asin(root) / root for root in roots]
        series = [
            2 / mp.mpf(count) * mp.fsum(v * mp.cos(n * a) for v, a in zip(values, angles, strict=True))
            for n in range(degree + 1)
        ]
        series[0] /= 2
        powers = [mp.mpf(0)] * (degree + 1)
        before, now = [mp.mpf(1)], [mp.mpf(0), mp.mpf(1)]
        for coefficient in series:
            for n, term in enumerate(before):
                powers[n] += coefficient * term
            following = [mp.mpf(0), *(2 * term for term in now)]
            for n, term in enumerate(before):
                following[n] -= term
            before, now = now, following
        return [float(power) for power in powers]


@pytest.mark.parametrize(("kept", "degree"), [(arccosine.DOUBLE, 20), (arccosine.SINGLE, 8)])
def test_the_coefficients_are_the_chebyshev_fit(kept, degree):
    np.testing.assert_allclose(kept, chebyshev_monomials(degree), rtol=1e-15)


@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 3e-16), ("float32", 2.5e-7)])
def test_arccosine_is_accurate_to_rounding(dtype, tolerance):
    inner = np.linspace(-1, 1, 401)
    c = np.concatenate([inner, 1 - np.geomspace(1e-15, 0.1, 50), np.geomspace(1e-15, 0.1, 50) - 1]).astype(dtype)
    with jax.enable_x64(True):
        value = np.asarray(arccosine.arccosine(jnp.asarray(c)))
    exact = np.array([float(mp.acos(mp.mpf(float(x)))) for x in c])
    assert value.dtype == dtype
    np.testing.assert_allclose(value, exact, rtol=2 * tolerance, atol=tolerance)


def test_segment_is_accurate_to_rounding():
    c = np.concatenate([np.linspace(-1, 1, 101), 1 - np.geomspace(1e-15, 0.1, 20)])
    with jax.enable_x64(True):
        value = np.asarray(arccosine.segment(jnp.asarray(c)))
    with mp.workdps(40):
        exact = [float(mp.sqrt(1 - mp.mpf(x) ** 2) - mp.mpf(x) * mp.acos(mp.mpf(x))) for x in c]
    np.testing.assert_allclose(value, exact, rtol=0, atol=7e-16)


def test_angle_keeps_its_relative_accuracy_at_both_axes():
    points = [(y, x) for y in (0.0, 1e-200, -1e-9, 0.3, -1.0, 5.0, 1e9) for x in (1e-9, 1.0, 3.0)]
    with jax.enable_x64(True):
        value = [float(arccosine.angle(jnp.float64(y), jnp.float64(x))) for y, x in points]
    exact = [float(mp.atan2(mp.mpf(y), mp.mpf(x))) for y, x in points]
    np.testing.assert_allclose(value, exact, rtol=4e-16)


@pytest.mark.parametrize("function", [arccosine.arccosine, arccosine.segment])
def test_slopes_are_finite_at_the_ends_and_right_inside(function):
    with jax.enable_x64(True):
        slope = jax.vmap(jax.grad(function))
        assert np.isfinite(slope(jnp.array([-1.0, 1.0]))).all()
        inside = jnp.array([-0.9, 0.0, 0.5])
        expected = -1 / np.sqrt(1 - inside**2) if function is arccosine.arccosine else -np.arccos(inside)
        np.testing.assert_allclose(slope(inside), expected, rtol=1e-15)
