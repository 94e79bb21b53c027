"""The sum of inner products and the trace through depth: uniform attention, linear MLPs, skips of weight 1."""

import numpy as np

import kernelprop as kp
from kernelprop.predictions import noci2022
from paper_checks.check import Check, Evidence, evidence
from paper_checks.effort import Effort
from paper_checks.statistics import mean
from paper_checks.tolerances import Statistical

LENGTH, DEPTH, WIDTH, SEED = 4, 6, 16, 41
ATTENTION, MLP = 0.6, 0.4
KERNEL = kp.kernels.equicorrelated(LENGTH, 0.2)


def measure(effort: Effort) -> Evidence:
    draws = effort.draws(6000, 30_000)
    rng = np.random.default_rng(SEED)

    def weights() -> np.ndarray:
        return rng.normal(size=(draws, WIDTH, WIDTH)) / np.sqrt(WIDTH)

    rows = np.linalg.cholesky(KERNEL) @ np.linalg.qr(rng.normal(size=(WIDTH, LENGTH)))[0].T * np.sqrt(WIDTH)
    x = np.broadcast_to(rows, (draws, LENGTH, WIDTH))
    totals, traces = [], []
    for _ in range(DEPTH):
        x = x + ATTENTION * np.broadcast_to(x.mean(1, keepdims=True) @ weights(), x.shape)
        x = x + MLP * (x @ weights() @ weights())
        totals.append(np.sum(x.sum(1) ** 2, -1) / WIDTH)
        traces.append(np.sum(x**2, (1, 2)) / WIDTH)
    depths = np.arange(1, DEPTH + 1)
    right = np.array([noci2022.moments_through_depth(KERNEL, int(depth), ATTENTION, MLP) for depth in depths])
    start = np.trace(KERNEL)
    wrong = np.stack([right[:, 0], start * ((1 + MLP**2) * (1 + ATTENTION**2 / LENGTH)) ** depths], -1)
    found = mean(np.stack([np.stack(totals, -1), np.stack(traces, -1)], -1))
    engine = kp.propagate(
        kp.Transformer(kp.uniform(LENGTH), DEPTH, kp.MLP("linear"), kp.Residual((1, ATTENTION), (1, MLP))), KERNEL
    ).kernels[1:]
    exact = np.stack([engine.sum((1, 2)), np.trace(engine, axis1=1, axis2=2)], -1)
    return evidence(
        np.stack([right, right]),
        np.stack([wrong, wrong]),
        np.stack([found.value, exact]),
        np.stack([found.stderr, 1e-9 * exact]),
        labels=[
            f"{what} at depth {depth}, {how}"
            for how in ("drawn", "kp.propagate")
            for depth in depths
            for what in ("sum of inner products", "trace")
        ],
        draws=draws,
        seed=SEED,
    )


CHECKS = (
    Check(
        id="noci2022.inner-products-and-trace",
        statement="Inner products and trace grow geometrically, the trace fed by the inner products.",
        formula="𝒞_L = ((1+β₁²)(1+β₂²))^L 𝒞_0, tr Σ_L = (1+β₂²)^L (tr Σ_0 + (𝒞_0/T)((1+β₁²)^L − 1)), 𝒞 = 1ᵀΣ1",
        source="section 3, the lemma on the propagation of inner products and norms",
        settings=f"T = {LENGTH}, L = {DEPTH}, d = {WIDTH}, β₁ = {ATTENTION}, β₂ = {MLP}, ρ_0 = 0.2",
        estimator="plain numpy networks; kp.propagate",
        tolerance=Statistical(),
        quick_tolerance=Statistical(percent=10),
        control="the attention branch feeds the trace as if positions were uncorrelated",
        measure=measure,
    ),
)
