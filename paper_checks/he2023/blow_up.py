"""Mismatch: correlated inputs make the diagonal of signal-preserving attention grow, anticorrelated ones shrink."""

import numpy as np

import kernelprop as kp
from paper_checks.check import Check, Curve, Evidence, Plot, evidence
from paper_checks.effort import Effort
from paper_checks.tolerances import Exact

LENGTH, DEPTH, LAST = 8, 10, 0.02
CORRELATIONS = (0.2, -0.1)


def measure(effort: Effort) -> Evidence:
    """``Σ_0 = (1−ρ)I + ρ11ᵀ`` through E-SPA made for ``I``: ``Σ_l = F_l Σ_0 F_lᵀ``, ``F_l F_lᵀ = e^{−γ_l|i−j|}``."""
    stack = kp.espa(LENGTH, DEPTH, gamma=LAST)
    sums = np.stack(
        [np.linalg.cholesky(kp.kernels.exponential(LENGTH, g)).sum(-1) for g in kp.espa_schedule(DEPTH, gamma=LAST)]
    )
    right = np.stack([1 - rho + rho * sums**2 for rho in CORRELATIONS])
    kernels = np.stack([kp.kernels.equicorrelated(LENGTH, rho) for rho in CORRELATIONS])
    found = kp.propagate(kp.Transformer(stack), kernels, keep="last").diagonal
    depths = np.arange(DEPTH + 1)
    curves = tuple(
        Curve(f"last position, ρ = {rho:g}", depths, found[k, :, -1], None, right[k, :, -1], np.ones(DEPTH + 1))
        for k, rho in enumerate(CORRELATIONS)
    )
    shown = [f"{found[k, -1, -1]:.3f} at ρ = {rho:g}" for k, rho in enumerate(CORRELATIONS)]
    return evidence(
        right[:, 1:, ::3],
        1.0,
        found[:, 1:, ::3],
        labels=[
            f"ρ = {rho:g}, Σ_{n}[{i}, {i}]" for rho in CORRELATIONS for n in depths[1:] for i in range(0, LENGTH, 3)
        ],
        plot=Plot(curves, "depth", "Σ_ii of the last position"),
        finding=f"the last position's diagonal ends at {' and '.join(shown)} in place of 1",
    )


CHECKS = (
    Check(
        id="he2023.diagonal-blow-up",
        statement="Inputs more correlated than prescribed make the diagonal grow with depth, others shrink it.",
        formula="diag Σ_l = 1 − ρ + ρ (F_l 1)², F_l F_lᵀ = e^{−γ_l|i−j|}",
        source="section 4 and appendix, repeated tokens and correlated embeddings",
        settings=f"T = {LENGTH}, L = {DEPTH}, E-SPA for Σ_0 = I to γ_L = {LAST}; true ρ = 0.2 and −0.1",
        estimator="kp.propagate, the diagonal at every depth",
        tolerance=Exact(operations=600),
        control="a diagonal of 1, as for the prescribed input",
        measure=measure,
    ),
)
