"""One layer of softmax attention close to collapse: the residual becomes its own cube."""

import numpy as np

import kernelprop as kp
from paper_checks.check import Check, Curve, Evidence, Plot, evidence
from paper_checks.effort import Effort
from paper_checks.fits import power_law
from paper_checks.statistics import mean
from paper_checks.tolerances import Rate, Statistical

SEED = 61
GAPS = np.geomspace(0.03, 3e-4, 5)


def next_gap(rng: np.random.Generator, draws: int, centred: np.ndarray, deviation: float) -> np.ndarray:
    """``tr(C P Σ Pᵀ C)/(T−1)``, one a draw of ``P = softmax(M)``, ``Σ = 11ᵀ + c cᵀ``, ``c`` the centred ``(T, r)``.

    ``M = s F Z Fᵀ``; what all keys share drops out of the softmax, so that only ``c`` stands on the key side.
    """
    length = len(centred)
    factor = np.concatenate([np.ones((length, 1)), centred], 1)
    factor /= np.sqrt(np.mean(np.sum(factor**2, 1)))
    noise = rng.normal(size=(draws, factor.shape[1], centred.shape[1]))
    weights = np.exp(deviation * factor @ noise @ centred.T)
    weights /= weights.sum(-1, keepdims=True)
    moved = weights @ centred
    return np.sum((moved - moved.mean(1, keepdims=True)) ** 2, (1, 2)) / (length - 1)


def isotropic(length: int, gap: float) -> np.ndarray:
    """The centred factor of ``(1−δ)11ᵀ + δI``, less what its centring takes: ``δ C``."""
    return np.sqrt(gap) * (np.eye(length) - 1 / length)


def one_direction(length: int, gap: float) -> np.ndarray:
    """The same trace of the centred kernel in a single direction."""
    direction = np.linspace(-1, 1, length)[:, None]
    return np.sqrt(gap * (length - 1)) * direction / np.linalg.norm(direction)


def rate(effort: Effort) -> Evidence:
    draws, length = effort.draws(10_000, 40_000), 4
    rng = np.random.default_rng(SEED)
    found = [mean(next_gap(rng, draws, isotropic(length, gap), 1.0)) for gap in GAPS]
    value, stderr = (np.array([getattr(one, name) for one in found]) for name in ("value", "stderr"))
    # Residuals are roots of gaps; the exponent is the same.
    slope = power_law(GAPS, value, stderr)
    engine = power_law(GAPS, np.array([_engine(length, gap) for gap in GAPS]))
    scale = (length - 1) / length
    residuals = np.sqrt(GAPS * scale)
    return evidence(
        [3.0, 3.0],
        [2.5, 2.5],
        [slope.value, engine.value],
        [slope.stderr, engine.stderr],
        labels=["exponent, numpy", "exponent, kp.propagate"],
        draws=draws,
        seed=SEED,
        plot=Plot(
            (
                Curve(
                    "T = 4, s = 1 (control: exponent 2.5)",
                    residuals,
                    np.sqrt(value * scale),
                    0.5 * stderr * np.sqrt(scale / value),
                    residuals**3 / np.sqrt(length - 1),
                    residuals[0] ** 0.5 * residuals**2.5 / np.sqrt(length - 1),
                ),
            ),
            "relative residual before",
            "relative residual after",
            log_x=True,
            log_y=True,
        ),
    )


def _engine(length: int, gap: float) -> float:
    """The gap after one layer of infinitely many heads."""
    attention = kp.random_softmax(length, draws=256, chains=8, seed=SEED)
    evolution = kp.propagate(kp.Transformer(attention), kp.kernels.equicorrelated(length, 1 - gap), "last")
    return float(evolution.rank_residual[-1] ** 2 * length / (length - 1))


def prefactor(effort: Effort) -> Evidence:
    """At a gap so small that the next order is far below the errors."""
    draws, gap = effort.draws(60_000, 200_000), 1e-5
    rng = np.random.default_rng(SEED + 1)
    right, wrong, found, labels = [], [], [], []
    for length, s in ((4, 1.0), (8, 1.0), (8, 0.5), (8, 2.0)):
        found.append(mean(next_gap(rng, draws, isotropic(length, gap), s) / gap**3))
        right.append(s**2 * (length - 1) / length**2)
        wrong.append(s**2 / length)
        labels.append(f"1 − c, T = {length}, s = {s:g}")
    for length in (4, 8):
        found.append(mean(next_gap(rng, draws, one_direction(length, gap), 1.0) / gap**3))
        right.append((length - 1) ** 2 / length**2)
        wrong.append((length - 1) / length**2)
        labels.append(f"1 − c, T = {length}, s = 1, residual in one direction")
    value, stderr = (np.array([getattr(one, name) for one in found]) for name in ("value", "stderr"))
    return evidence(
        right,
        wrong,
        value,
        stderr,
        labels=labels,
        draws=draws,
        seed=SEED + 1,
        finding=(
            "the law δ' = s²δ³(T−1)/T² is one of the gap δ = 1 − c of uniformly correlated positions; for the relative "
            "residual ε = ‖X − 1x̄ᵀ‖_F/‖X‖_F it reads ε' = s ε³/√(T−1), and in general ε' = s ε³/√PR, PR the "
            f"participation ratio of the centred kernel: a residual in one direction shrinks by "
            f"{value[4] / value[0]:.2f} (T = 4) and {value[5] / value[1]:.2f} (T = 8) times less in the gap"
        ),
    )


CHECKS = (
    Check(
        id="dong2021.cubic-law-rate",
        statement="Close to collapse one layer of softmax attention cubes the residual.",
        formula="ε' ∝ ε³",
        source="section 2, the cubic rate of convergence",
        settings="T = 4, logits of deviation s = 1, equal correlations, 1 − c = 0.03 to 3e-4",
        estimator="Gaussian logits and their softmax in numpy; kp.propagate with infinitely many heads; fitted slopes",
        tolerance=Rate(step=0.25, allowance=0.05, because="the next order, ε² at the largest ε"),
        control="an exponent of 2.5",
        measure=rate,
    ),
    Check(
        id="dong2021.cubic-law",
        statement="The prefactor of the cubic law.",
        formula="1 − c: δ' = s²δ³(T−1)/T²; in one direction δ' = s²δ³(T−1)²/T²; residual: ε' = s ε³/√PR",
        source="section 2, the cubic rate; says which measure of the residual and which shape the prefactor belongs to",
        settings="T = 4, 8; s = 0.5, 1, 2; δ = 1e-5",
        estimator="Gaussian logits and their softmax in numpy",
        tolerance=Statistical(),
        quick_tolerance=Statistical(percent=10),
        control="1/T in the place of (T−1)/T²; that of equal correlations for a residual in one direction",
        measure=prefactor,
    ),
)
