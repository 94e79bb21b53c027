"""Normalised residuals ``α² + β² = 1`` keep the diagonal where the branch does."""

import numpy as np

import kernelprop as kp
from paper_checks.check import Check, Curve, Evidence, Plot, evidence
from paper_checks.effort import Effort
from paper_checks.statistics import mean
from paper_checks.tolerances import Statistical

LENGTH, DEPTH, WIDTH, SEED = 4, 6, 32, 17
ALPHA, BETA = 0.8, 0.6


def networks(draws: int, attention: np.ndarray | None) -> np.ndarray:
    """Diagonals ``(draws, L + 1, T)`` of numpy networks: an attention branch if there is one, and a ReLU MLP branch."""
    rng = np.random.default_rng(SEED)

    def weights(deviation: float) -> np.ndarray:
        return rng.normal(size=(draws, WIDTH, WIDTH)) * (deviation / np.sqrt(WIDTH))

    rows = np.linalg.qr(rng.normal(size=(WIDTH, LENGTH)))[0].T * np.sqrt(WIDTH)
    x = np.broadcast_to(rows, (draws, LENGTH, WIDTH))
    found = [np.mean(x**2, -1)]
    for layer in range(DEPTH):
        if attention is not None:
            x = ALPHA * x + BETA * (attention[layer] @ x) @ weights(1)
        x = ALPHA * x + BETA * np.maximum(x @ weights(np.sqrt(2)), 0) @ weights(1)
        found.append(np.mean(x**2, -1))
    return np.stack(found, 1)


def mlp_branch(effort: Effort) -> Evidence:
    draws = effort.draws(6000, 24_000)
    found = mean(networks(draws, None).mean(-1)[:, 1:])
    depths = np.arange(1, DEPTH + 1)
    wrong = (ALPHA**2 + (1 - ALPHA) ** 2) ** depths
    engine = kp.propagate(
        kp.Transformer(
            kp.identity(LENGTH),
            DEPTH,
            kp.MLP("relu", 1, gain_in=np.sqrt(2)),
            kp.Residual(attention=(1.0, 0.0), mlp=(ALPHA, BETA)),
        ),
        kp.kernels.identity(LENGTH),
        "last",
    )
    return evidence(
        np.ones(DEPTH + 1),
        np.append(wrong, 1.0),
        np.append(found.value, engine.diagonal[-1, 0]),
        np.append(found.stderr, 1e-12),
        labels=[*(f"diagonal at depth {depth}" for depth in depths), "diagonal at the end, kernel engine"],
        draws=draws,
        seed=SEED,
        plot=Plot(
            (Curve("mean diagonal", depths, found.value, found.stderr, np.ones(DEPTH), wrong),),
            "depth",
            "mean of Σ_ii",
        ),
    )


def espa_branch(effort: Effort) -> Evidence:
    """What becomes of the diagonal when E-SPA is put into a normalised residual."""
    draws = effort.draws(6000, 24_000)
    stack = kp.espa(LENGTH, DEPTH, gamma=0.05)
    found = mean(networks(draws, stack.as_matrix())[:, -1])
    model = kp.Transformer(
        stack, mlp=kp.MLP("relu", 1, gain_in=np.sqrt(2)), residual=kp.Residual((ALPHA, BETA), (ALPHA, BETA))
    )
    predicted = kp.propagate(model, kp.kernels.identity(LENGTH), "last").diagonal[-1]
    return evidence(
        predicted,
        1.0,
        found.value,
        found.stderr,
        labels=[f"diagonal of position {i}" for i in range(LENGTH)],
        draws=draws,
        seed=SEED,
        finding=(
            "α² + β² = 1 keeps the diagonal only where the branch keeps that of the kernel it receives; E-SPA is made "
            "for the kernel without skips and MLPs, and inside a normalised residual the diagonal ends at "
            f"{predicted.min():.3f} to {predicted.max():.3f} after {DEPTH} layers (from 1)"
        ),
    )


CHECKS = (
    Check(
        id="he2023.normalised-residual",
        statement="Residuals with α² + β² = 1 keep the diagonal at 1 when the branch does.",
        formula="Σ_ii ← α²Σ_ii + β²Σ_branch,ii = 1",
        source="section 5, normalised residual connections",
        settings=f"L = {DEPTH} ReLU MLP branches (σ₁² = 2), α = {ALPHA}, β = {BETA}, d = {WIDTH}, Σ_0 = I",
        estimator="plain numpy networks, the mean over positions; kp.propagate",
        tolerance=Statistical(),
        control="weights that add up to 1 (α + β = 1) in their place",
        measure=mlp_branch,
    ),
    Check(
        id="he2023.normalised-residual-espa",
        statement="With E-SPA in the branch the diagonal leaves 1 by what the recursion says.",
        formula="diag(α²Σ + β²AΣAᵀ) ≠ 1 where Σ is not the kernel that A is made for",
        source="sections 4 and 5 together; corrects the reading that normalised residuals always keep the diagonal",
        settings=f"T = {LENGTH}, L = {DEPTH}, γ_L = 0.05, ReLU MLPs, α = {ALPHA}, β = {BETA}, d = {WIDTH}, Σ_0 = I",
        estimator="plain numpy networks",
        tolerance=Statistical(),
        quick_tolerance=Statistical(percent=10),
        control="a diagonal of 1",
        measure=espa_branch,
    ),
)
