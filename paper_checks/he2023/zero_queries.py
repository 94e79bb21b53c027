"""At zero queries the keys receive no gradient, and the queries do."""

import numpy as np

import kernelprop as kp
from paper_checks.check import Check, Evidence, evidence
from paper_checks.effort import Effort
from paper_checks.tolerances import Statistical

LENGTH, DEPTH, WIDTH, SEED = 4, 2, 16, 19
FAMILIES = {"value": "orthogonal", "output": "orthogonal"}


def measure(effort: Effort) -> Evidence:
    """Attention alone, orthogonal values and outputs: then the query row is exact at every width."""
    model = kp.Transformer(kp.espa(LENGTH, DEPTH, gamma=0.3))
    kernel = kp.kernels.identity(LENGTH)
    draws = effort.draws(12_000, 40_000)
    drawn = kp.simulate(model, kernel, width=WIDTH, draws=draws, key=SEED, gradients=True, weights=FAMILIES)
    norms = kp.gradient_norms(model, kernel, width=WIDTH)
    assert drawn.query is not None
    assert drawn.key is not None
    assert norms.query is not None
    scale = float(norms.query.mean())
    right = np.stack([norms.query / scale, np.zeros(DEPTH)])
    return evidence(
        right,
        np.stack([norms.query / scale] * 2),
        np.stack([drawn.query.mean, drawn.key.mean]) / scale,
        np.stack([drawn.query.stderr, drawn.key.stderr]) / scale,
        labels=[f"{name}, layer {layer + 1}" for name in ("queries", "keys") for layer in range(DEPTH)],
        draws=draws,
        seed=SEED,
    )


CHECKS = (
    Check(
        id="he2023.zero-key-gradient",
        statement="While W_Q = 0 the gradient of the keys is exactly zero, and that of the queries is not.",
        formula="∂loss/∂W_K = 0, E‖∂loss/∂W_Q‖² = d² Σ_ii' Σ_ii' G_ii' D_i D_i' t_ii'",
        source="section 4, the initialisation W_Q = 0",
        settings=f"T = {LENGTH}, L = {DEPTH}, E-SPA to γ = 0.3, d = {WIDTH}, orthogonal W_V and W_O, in units of "
        "the mean query norm",
        estimator="kp.simulate, gradients by backpropagation",
        tolerance=Statistical(step=0.06),
        quick_tolerance=Statistical(percent=10, step=0.1),
        control="keys receive what queries receive",
        measure=measure,
    ),
)
