"""A ReLU MLP correlates positions where a linear one does not."""

import numpy as np

import kernelprop as kp
from paper_checks.check import Check, Curve, Evidence, Plot, evidence
from paper_checks.effort import Effort
from paper_checks.statistics import mean
from paper_checks.tolerances import Statistical

LENGTH, DEPTH, WIDTH, SEED = 4, 4, 32, 43
BETA = 0.5


def measure(effort: Effort) -> Evidence:
    """Mean over pairs of the kernel (linear in it, so that its mean is compared with that of the recursion)."""
    draws = effort.draws(6000, 30_000)
    rng = np.random.default_rng(SEED)

    def weights(deviation: float) -> np.ndarray:
        return rng.normal(size=(draws, WIDTH, WIDTH)) * (deviation / np.sqrt(WIDTH))

    rows = np.linalg.qr(rng.normal(size=(WIDTH, LENGTH)))[0].T * np.sqrt(WIDTH)
    x = np.broadcast_to(rows, (draws, LENGTH, WIDTH))
    pairs = []
    for _ in range(DEPTH):
        x = x + BETA * np.broadcast_to(x.mean(1, keepdims=True) @ weights(1), x.shape)
        x = x + BETA * np.maximum(x @ weights(np.sqrt(2)), 0) @ weights(1)
        squares = np.sum(x**2, (1, 2))
        pairs.append((np.sum(x.sum(1) ** 2, -1) - squares) / (LENGTH * (LENGTH - 1) * WIDTH))
    found = mean(np.stack(pairs, -1))
    right, wrong = (_pairs(_model(fn, gain)) for fn, gain in (("relu", np.sqrt(2)), ("linear", 1.0)))
    depths = np.arange(1, DEPTH + 1)
    ratio = found.value[-1] / wrong[-1]
    return evidence(
        right,
        wrong,
        found.value,
        found.stderr,
        labels=[f"mean inner product of pairs at depth {depth}" for depth in depths],
        draws=draws,
        seed=SEED,
        plot=Plot(
            (Curve("ReLU (control: linear)", depths, found.value, found.stderr, right, wrong),),
            "depth",
            "mean of Σ_ij, i ≠ j",
        ),
        finding=f"at equal diagonals a ReLU has {ratio:.2f} times the linear network's inner products at depth {DEPTH}",
    )


def _model(fn: str, gain: float) -> kp.Transformer:
    return kp.Transformer(kp.uniform(LENGTH), DEPTH, kp.MLP(fn, 1, gain_in=gain), kp.Residual((1, BETA), (1, BETA)))


def _pairs(model: kp.Transformer) -> np.ndarray:
    kernels = kp.propagate(model, kp.kernels.identity(LENGTH)).kernels[1:]
    return kernels[:, *np.triu_indices(LENGTH, 1)].mean(-1)


CHECKS = (
    Check(
        id="noci2022.relu-against-linear",
        statement="With a ReLU, scaled to keep the diagonal, positions become more correlated than with a linear MLP.",
        formula="Σ_ij ← Σ_ij + β₂² E[φ(u)φ(v)], the arc-cosine kernel with σ₁² = 2",
        source="section 3, ReLU against linear activations",
        settings=f"T = {LENGTH}, L = {DEPTH}, d = {WIDTH}, uniform attention, β = {BETA}, Σ_0 = I",
        estimator="plain numpy networks, the mean inner product of pairs",
        tolerance=Statistical(),
        quick_tolerance=Statistical(percent=10),
        control="the linear MLP of the same diagonal",
        measure=measure,
    ),
)
