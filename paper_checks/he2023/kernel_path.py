"""Prescribed kernels are hit at every depth."""

import numpy as np

import kernelprop as kp
from paper_checks.check import Check, Evidence, evidence
from paper_checks.effort import Effort
from paper_checks.tolerances import Exact

LENGTH, DEPTH, SEED = 8, 12, 5


def compared(stack: kp.Transformer, path: list[np.ndarray]) -> Evidence:
    """The first and the last row of every kernel; the control is the path of one layer later."""
    kernels = kp.propagate(stack, path[0]).kernels[1:, [0, -1]]
    right = np.stack(path)[:, [0, -1]]
    late = np.concatenate([right[2:], right[-1:]])
    return evidence(right[1:], late, kernels, labels="Σ_l")


def espa(effort: Effort) -> Evidence:
    path = [kp.kernels.exponential(LENGTH, gamma) for gamma in kp.espa_schedule(DEPTH, gamma=0.005)]
    return compared(kp.Transformer(kp.espa(LENGTH, DEPTH, gamma=0.005)), path)


def uspa(effort: Effort) -> Evidence:
    path = [kp.kernels.equicorrelated(LENGTH, rho) for rho in kp.uspa_schedule(DEPTH, rho=0.8)]
    return compared(kp.Transformer(kp.uspa(LENGTH, DEPTH, rho=0.8)), path)


def any_path(effort: Effort) -> Evidence:
    """Kernels of random features, unrelated from depth to depth, mixed with the identity."""
    features = np.random.default_rng(SEED).normal(size=(4, LENGTH, LENGTH))
    path = [0.5 * np.eye(LENGTH) + 0.5 * f @ f.T / LENGTH for f in features]
    return compared(kp.Transformer(kp.signal_preserving(path, require_nonnegative=False)), path)


def _check(name: str, what: str, formula: str, settings: str, measure) -> Check:
    return Check(
        id=f"he2023.prescribed-{name}",
        statement=f"{what} ends every layer at the kernel that it prescribes.",
        formula=formula,
        source="section 4" if name != "path" else "section 3, A_l = F_l F_{l−1}⁻¹",
        settings=settings,
        estimator="kp.propagate, the first and the last row of the kernel at every depth",
        tolerance=Exact(operations=600),
        control="the kernel of the layer above (an index shifted by one)",
        measure=measure,
        quick=name != "path",
    )


CHECKS = (
    _check("espa", "E-SPA", "Σ_l = e^{−γ_l|i−j|}", f"T = {LENGTH}, L = {DEPTH}, γ_0 = ∞, γ_L = 0.005", espa),
    _check("uspa", "U-SPA", "Σ_l = (1−ρ_l)I + ρ_l 11ᵀ", f"T = {LENGTH}, L = {DEPTH}, ρ_0 = 0, ρ_L = 0.8", uspa),
    _check(
        "path",
        "Attention made from the Cholesky factors of any path of kernels",
        "A_l Σ_{l−1} A_lᵀ = Σ_l",
        f"T = {LENGTH}, L = 3, kernels of random features",
        any_path,
    ),
)
