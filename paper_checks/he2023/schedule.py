"""The E-SPA schedule has a constant diagonal, but for the first position."""

import numpy as np

import kernelprop as kp
from paper_checks.check import Check, Evidence, evidence
from paper_checks.effort import Effort
from paper_checks.he2023.closed_forms import solved
from paper_checks.tolerances import Exact

LENGTH, DEPTH, FIRST, LAST = 6, 8, 2.0, 0.005


def measure(effort: Effort) -> Evidence:
    gammas = kp.espa_schedule(DEPTH, gamma=LAST, gamma0=FIRST)
    kernels = [kp.kernels.exponential(LENGTH, gamma) for gamma in gammas]
    found = [np.diagonal(solved(kernels[layer], kernels[layer + 1])) for layer in range(DEPTH)]
    scale = [np.sqrt(1 - np.exp(-2 * gamma)) for gamma in (FIRST, LAST)]
    ratio = (scale[1] / scale[0]) ** (1 / DEPTH)
    predicted = np.full((DEPTH, LENGTH), ratio)
    predicted[:, 0] = 1.0
    return evidence(
        predicted,
        ratio,
        found,
        labels=[f"A_{layer + 1}[{i}, {i}]" for layer in range(DEPTH) for i in range(LENGTH)],
        finding=(
            f"the diagonal is constant only from the second position on: {ratio:.6f} in every layer there, but "
            f"{found[0][0]:.6f} at the first, which has nothing before it; corrected: A_ii = (a(γ_L)/a(γ_0))^(1/L) for "
            "i ≥ 1, A_00 = 1"
        ),
    )


CHECKS = (
    Check(
        id="he2023.espa-constant-diagonal",
        statement="Under the E-SPA schedule every diagonal entry of every layer is the same number, but the first.",
        formula="a(γ_l) = a(γ_0)^{1−l/L} a(γ_L)^{l/L} ⟹ A_ii = (a(γ_L)/a(γ_0))^{1/L}, i ≥ 1; A_00 = 1",
        source="section 4, the schedule of γ",
        settings=f"T = {LENGTH}, L = {DEPTH}, γ from {FIRST} to {LAST}",
        estimator="numpy's Cholesky factors and a triangular solve along kp.espa_schedule",
        tolerance=Exact(operations=1e6),
        control="all diagonal entries agree, the first too",
        measure=measure,
    ),
)
