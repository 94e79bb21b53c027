"""The published bound on the residual, where it says anything."""

import numpy as np

from kernelprop.observables import composite_norm
from paper_checks.check import Check, Evidence, evidence
from paper_checks.effort import Effort
from paper_checks.tolerances import AtLeast

SEED = 71


def residual(x: np.ndarray) -> float:
    """``‖X − 1x̄ᵀ‖_{1,∞}``, the root of the largest column sum times the largest row sum."""
    return float(composite_norm(x - x.mean(0)))


def layer(x: np.ndarray, score: np.ndarray, value: np.ndarray) -> np.ndarray:
    """``softmax(X W_QK Xᵀ/√d) X W_V``."""
    logits = x @ score @ x.T / np.sqrt(score.shape[0])
    weights = np.exp(logits - logits.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True) @ x @ value


def factor(score: np.ndarray, value: np.ndarray) -> float:
    """``4β/√d_qk``, ``β = ‖W_QK‖₁ ‖W_V‖_{1,∞}``."""
    largest_column = float(np.abs(score).sum(0).max())
    return 4 * largest_column * float(composite_norm(value)) / np.sqrt(score.shape[0])


def aligned(gap: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Two positions of one feature, the tightest case found."""
    return np.array([[1 + gap], [1 - gap]]), np.ones((1, 1)), np.ones((1, 1))


def cases(effort: Effort) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Random ones, small enough that the bound lies below the residual that it starts from."""
    rng = np.random.default_rng(SEED)
    found = [aligned(gap) for gap in (0.2, 0.1, 0.01)]
    while len(found) < effort.draws(300, 3000):
        length, width = int(rng.integers(2, 7)), int(rng.integers(1, 5))
        x = rng.normal(size=width) + rng.normal(size=(length, width)) * 10.0 ** rng.uniform(-3, -0.5)
        score, value = rng.normal(size=(2, width, width))
        if factor(score, value) * residual(x) ** 2 < 1:
            found.append((x, score, value))
    return found


def measure(effort: Effort) -> Evidence:
    """Decades between residual and bound, over one layer and two; of two a quarter, the bound being a fourth power."""
    one, two = [], []
    for x, score, value in cases(effort):
        slope, start = factor(score, value), residual(x)
        after = layer(x, score, value)
        twice = layer(after, score, value)
        one.append(np.log10(slope * start**3) - np.log10(residual(after)))
        bound = 4 * np.log10(slope) + 9 * np.log10(start)
        # Below this rounding of X and not the softmax makes the residual.
        if residual(twice) > 1e-12 * np.abs(twice).max():
            two.append((bound - np.log10(residual(twice))) / 4)
    rng = np.random.default_rng(SEED)
    width, length = 64, 16
    x, score = rng.normal(size=(length, width)), rng.normal(size=(width, width)) / np.sqrt(width)
    usual = factor(score, rng.normal(size=(width, width)) / np.sqrt(width)) * residual(x) ** 2
    return evidence(
        [0.0, 0.0],
        [1.0, 1.0],
        [min(one), min(two)],
        labels=[f"one layer, least of {len(one)} decades", f"two layers, a quarter of the least of {len(two)}"],
        seed=SEED,
        finding=(
            f"the bound is never tight: at its best it lies a factor {10 ** min(one):.1f} above the residual after one "
            f"layer, {10 ** (4 * min(two)):.0f} after two; at a usual initialisation (T = {length}, d = {width}) it is "
            f"vacuous, {usual:.1e} times the residual that it starts from"
        ),
    )


CHECKS = (
    Check(
        id="dong2021.published-bound",
        statement="The published bound holds wherever it isn't vacuous, with room to spare.",
        formula="‖res(X_L)‖_{1,∞} ≤ (4β/√d_qk)^{(3^L−1)/2} ‖res(X)‖^{3^L}_{1,∞}, β ≥ ‖W_QK‖₁‖W_V‖_{1,∞}",
        source="section 2, the theorem for single-head attention networks",
        settings="one and two layers, T = 2 to 6, d = 1 to 4, random and aligned, only where bound < ‖res(X)‖",
        estimator="heads in numpy; the least distance in decades from residual to bound, per power of the factor",
        tolerance=AtLeast(step=1),
        control="the factor 4β/√d_qk a decade smaller",
        measure=measure,
    ),
)
