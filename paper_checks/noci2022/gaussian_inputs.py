"""Gaussian inputs: the dependence on length, width and correlation, exactly and at leading order."""

import numpy as np

from kernelprop.predictions import noci2022
from paper_checks.check import Check, Curve, Evidence, Plot, evidence
from paper_checks.effort import Effort
from paper_checks.fits import power_law
from paper_checks.noci2022.one_layer import correlated
from paper_checks.statistics import mean
from paper_checks.tolerances import Rate, Statistical

SEED = 37
CASES = tuple((length, width, rho) for length, width in ((2, 2), (4, 3), (6, 8)) for rho in (0.0, 0.5, 0.9))
SMALL = tuple(case for case in CASES if case[:2] != (6, 8))


def drawn(case: tuple[int, int, float], draws: int) -> tuple[np.ndarray, np.ndarray]:
    """``‖X‖²‖XᵀCX‖²/T²`` and ``1ᵀXXᵀ1/T``, one a draw, over ``d_v σ_v² σ_k²`` and ``d_v``."""
    length, width, rho = case
    x = correlated(np.random.default_rng([SEED, *case[:2], int(10 * rho)]), draws, length, width, rho)
    centred = x - x.mean(1, keepdims=True)
    scatter = np.swapaxes(centred, 1, 2) @ centred
    return np.sum(x**2, (1, 2)) * np.sum(scatter**2, (1, 2)) / length**2, np.sum(x.sum(1) ** 2, 1) / length


def exact(effort: Effort) -> Evidence:
    draws = effort.draws(200_000, 1_000_000)
    found = [mean(samples) for case in CASES for samples in drawn(case, draws)]
    right, wrong = [], []
    for length, width, rho in CASES:
        right += [
            noci2022.expected_query_jacobian(length, width, 1, rho),
            noci2022.expected_value_jacobian(length, width, 1, rho),
        ]
        wrong += [noci2022.leading_query_jacobian(length, width, 1, rho), length * width * (1 + rho) / 2]
    return evidence(
        right,
        wrong,
        [one.value for one in found],
        [one.stderr for one in found],
        labels=[f"{name}, T = {t}, d = {d}, ρ = {rho}" for t, d, rho in CASES for name in ("queries", "values")],
        draws=draws,
        seed=SEED,
    )


def leading(effort: Effort) -> Evidence:
    """How far the leading order falls short, measured: the mean over draws divided by the leading order."""
    draws = effort.draws(200_000, 1_000_000)
    found = [mean(drawn(case, draws)[0] / noci2022.leading_query_jacobian(*case[:2], 1, case[2])) for case in SMALL]
    right = np.array([1 + 4 * (1 - rho) / (length * width) for length, width, rho in SMALL])
    value, stderr = (np.array([getattr(one, name) for one in found]) for name in ("value", "stderr"))
    shown = [
        f"{v:.3f} ± {e:.3f} at T = {t}, d = {d}, ρ = {r}" for (t, d, r), v, e in zip(SMALL, value, stderr, strict=True)
    ]
    return evidence(
        right,
        1.0,
        value,
        stderr,
        labels=[f"T = {t}, d = {d}, ρ = {rho}" for t, d, rho in SMALL],
        draws=draws,
        seed=SEED,
        finding=(
            "the leading order d_v σ_v²σ_k²σ_x⁶ (T−1)(T+d)(1−ρ)² d²/T falls short of the mean by the factor "
            f"1 + 4(1−ρ)/(Td): measured {', '.join(shown)}; corrected: (Td + 4(1−ρ))/T² in the place of d/T"
        ),
    )


def approach(effort: Effort) -> Evidence:
    """The shortfall of the leading order against ``Td`` at ρ = 0, by moments of the Wishart scatter drawn."""
    draws = effort.draws(400_000, 2_000_000)
    lengths = np.array([2, 3, 4, 6])
    found = [
        mean(drawn((int(t), 2, 0.0), draws)[0] / noci2022.leading_query_jacobian(int(t), 2, 1, 0.0) - 1)
        for t in lengths
    ]
    size = lengths * 2
    value, stderr = (np.array([getattr(one, name) for one in found]) for name in ("value", "stderr"))
    slope = power_law(size, value, stderr)
    return evidence(
        [-1.0],
        [-0.5],
        [slope.value],
        [slope.stderr],
        labels="exponent of the shortfall in Td",
        draws=draws,
        seed=SEED,
        plot=Plot(
            (
                Curve(
                    "shortfall of the leading order",
                    size,
                    value,
                    stderr,
                    4 / size,
                    4 / size[0] * (size[0] / size) ** 0.5,
                ),
            ),
            "T d",
            "mean / leading order − 1",
            log_x=True,
            log_y=True,
        ),
    )


CHECKS = (
    Check(
        id="noci2022.gaussian-inputs",
        statement="The expected norms for Gaussian inputs of correlation ρ, exact for every length and width.",
        formula="E‖∂S/∂W_Q‖² = d_v σ_v²σ_k²σ_x⁶ (T−1)(T+d)(1−ρ)²(Td + 4(1−ρ))/T², E‖∂S/∂W_V‖² = d_v d σ_x²(1+(T−1)ρ)",
        source="section 3, the dependence on T, d and ρ",
        settings="(T, d) = (2, 2), (4, 3), (6, 8); ρ = 0, 0.5, 0.9; d_v = σ_v = σ_k = σ_x = 1",
        estimator="inputs drawn in numpy",
        tolerance=Statistical(),
        quick_tolerance=Statistical(percent=10),
        control="the leading order of the query norm; the value norm with a mean correlation of ρ T/2",
        measure=exact,
    ),
    Check(
        id="noci2022.leading-order",
        statement="The leading order of the query norm is off by a known factor.",
        formula="exact / leading = 1 + 4(1−ρ)/(Td)",
        source="section 3; corrects the leading order at small T and d",
        settings="(T, d) = (2, 2), (4, 3); ρ = 0, 0.5, 0.9",
        estimator="inputs drawn in numpy, divided by the leading order",
        tolerance=Statistical(),
        quick_tolerance=Statistical(percent=10),
        control="no shortfall",
        measure=leading,
    ),
    Check(
        id="noci2022.leading-order-rate",
        statement="The shortfall of the leading order falls as 1/(Td).",
        formula="exact / leading − 1 ∝ (Td)⁻¹",
        source="section 3",
        settings="ρ = 0, d = 2, T = 2, 3, 4, 6",
        estimator="inputs drawn in numpy; a fitted slope",
        tolerance=Rate(step=0.5),
        control="an exponent of −1/2",
        measure=approach,
    ),
)
