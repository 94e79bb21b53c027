"""Exponents and their errors."""

import numpy as np
import pytest

from paper_checks.fits import power_law
from paper_checks.statistics import mean, ratio


def test_an_exact_power():
    x = np.geomspace(1, 10, 5)
    slope = power_law(x, 2 * x**3)
    assert slope.value == pytest.approx(3, abs=1e-12)
    assert slope.stderr < 1e-12


def test_the_error_of_a_slope_is_the_spread_of_slopes():
    generator, x = np.random.default_rng(0), np.geomspace(1, 8, 4)
    errors = 0.01 * x**2 * np.array([1.0, 2.0, 0.5, 1.0])
    slopes = [power_law(x, x**2 + errors * generator.normal(size=4), errors) for _ in range(4000)]
    z = np.array([(slope.value - 2) / slope.stderr for slope in slopes])
    # The mean of 4000 is right to 0.016, their deviation to 0.011; the logarithm bends them by a hundredth.
    assert abs(z.mean()) < 0.08
    assert abs(z.std() - 1) < 0.06


def test_a_mean_and_a_ratio_with_their_errors():
    generator = np.random.default_rng(1)
    below = generator.normal(5, 1, size=(2000, 400))
    above = 2 * below + generator.normal(0, 0.1, size=below.shape)
    found = [ratio(a, b) for a, b in zip(above, below, strict=True)]
    z = np.array([(one.value - 2) / one.stderr for one in found])
    assert abs(z.mean()) < 0.1
    assert abs(z.std() - 1) < 0.07
    one = mean(below[0])
    assert one.draws == 400
    assert one.stderr == pytest.approx(below[0].std(ddof=1) / 20)
