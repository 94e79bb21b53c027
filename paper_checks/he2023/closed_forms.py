"""The closed forms of E-SPA and U-SPA attention against a Cholesky solve."""

import numpy as np
from scipy.linalg import solve_triangular

import kernelprop as kp
from paper_checks.check import Check, Evidence, evidence
from paper_checks.effort import Effort
from paper_checks.tolerances import Exact

LENGTH = 6
GAMMAS, RHOS = (1.0, 0.2), (0.2, 0.6)


def solved(before: np.ndarray, after: np.ndarray) -> np.ndarray:
    """``F_l F_{l−1}⁻¹`` by a triangular solve."""
    lower = [np.linalg.cholesky(np.asarray(kernel)) for kernel in (before, after)]
    return solve_triangular(lower[0].T, lower[1].T).T


def espa_matrix(before: float, after: float, first_ratio: bool = True) -> np.ndarray:
    """The closed form, entry by entry; without ``r`` in the first column it is the control."""
    scale = [np.sqrt(1 - np.exp(-2 * gamma)) for gamma in (before, after)]
    r = scale[1] / scale[0]
    matrix = np.zeros((LENGTH, LENGTH))
    for i in range(LENGTH):
        matrix[i, i] = r if i else 1.0
        for j in range(1, i):
            matrix[i, j] = r * np.exp(-after * (i - j - 1)) * (np.exp(-after) - np.exp(-before))
        if i:
            pulled = (r if first_ratio else 1.0) * np.exp(-before)
            matrix[i, 0] = np.exp(-after * (i - 1)) * (np.exp(-after) - pulled)
    return matrix


def uspa_factor(rho: float, shifted: int = 0) -> np.ndarray:
    """The Cholesky factor in closed form; ``shifted`` moves the index of its columns, which is the control."""
    m = np.arange(LENGTH) + shifted
    before, upto = 1 + (m - 1) * rho, 1 + m * rho
    column = rho * np.sqrt((1 - rho) / (before * upto))
    return np.tril(np.tile(column, (LENGTH, 1)), -1) + np.diag(np.sqrt((1 - rho) * upto / before))


def both(closed: np.ndarray, wrong: np.ndarray, operator: np.ndarray, kernels: list[np.ndarray]) -> Evidence:
    lower = np.tril_indices(LENGTH)
    return evidence(
        np.stack([closed[lower]] * 2),
        np.stack([wrong[lower]] * 2),
        np.stack([solved(*kernels)[lower], operator[lower]]),
        labels=[f"{how} A[{i}, {j}]" for how in ("solved", "operator") for i, j in zip(*lower, strict=True)],
    )


def espa(effort: Effort) -> Evidence:
    kernels = [kp.kernels.exponential(LENGTH, gamma) for gamma in GAMMAS]
    operator = kp.espa(LENGTH, gammas=GAMMAS).as_matrix()[0]
    return both(espa_matrix(*GAMMAS), espa_matrix(*GAMMAS, first_ratio=False), operator, kernels)


def uspa(effort: Effort) -> Evidence:
    kernels = [kp.kernels.equicorrelated(LENGTH, rho) for rho in RHOS]
    operator = kp.uspa(LENGTH, rhos=RHOS).as_matrix()[0]
    closed, wrong = (uspa_factor(RHOS[1], shift) @ np.linalg.inv(uspa_factor(RHOS[0], shift)) for shift in (0, 1))
    return both(closed, wrong, operator, kernels)


CHECKS = (
    Check(
        id="he2023.espa-closed-form",
        statement="E-SPA attention in closed form is the ratio of two Cholesky factors.",
        formula="A_00 = 1, A_ii = r, A_ij = r e^{−γ_l(i−j−1)}(e^{−γ_l} − e^{−γ_{l−1}}), "
        "A_i0 = e^{−γ_l(i−1)}(e^{−γ_l} − r e^{−γ_{l−1}}), r = a(γ_l)/a(γ_{l−1}), a(γ) = √(1−e^{−2γ})",
        source="section 4, E-SPA",
        settings=f"T = {LENGTH}, γ from {GAMMAS[0]} to {GAMMAS[1]}",
        estimator="numpy's Cholesky factors and a triangular solve; the operator kp.espa",
        tolerance=Exact(),
        control="the factor r left out of the first column",
        measure=espa,
    ),
    Check(
        id="he2023.uspa-closed-form",
        statement="The Cholesky factor of a kernel of uniform correlation, and so U-SPA attention, in closed form.",
        formula="F_mm = √((1−ρ)(1+mρ)/(1+(m−1)ρ)), F_im = ρ√((1−ρ)/((1+(m−1)ρ)(1+mρ))), A = F_l F_{l−1}⁻¹",
        source="section 4, U-SPA",
        settings=f"T = {LENGTH}, ρ from {RHOS[0]} to {RHOS[1]}",
        estimator="numpy's Cholesky factors and a triangular solve; the operator kp.uspa",
        tolerance=Exact(),
        control="positions counted from 1 where the formula counts from 0",
        measure=uspa,
    ),
)
