"""Without a mask: symmetric square roots, which carry the kernels but need not be non-negative."""

import itertools

import numpy as np

import kernelprop as kp
from paper_checks.check import Check, Evidence, evidence
from paper_checks.effort import Effort
from paper_checks.tolerances import AtLeast, Exact

LENGTH, DEPTH = 8, 4


def kernels_hit(effort: Effort) -> Evidence:
    gammas = [np.inf, 1.0, 0.3, 0.1, 0.05]
    found = kp.propagate(
        kp.Transformer(kp.espa(LENGTH, gammas=gammas, causal=False)), kp.kernels.identity(LENGTH)
    ).kernels[1:, 0]
    right = np.stack([kp.kernels.exponential(LENGTH, gamma)[0] for gamma in gammas[1:]])
    roots = np.stack([_root(kp.kernels.exponential(LENGTH, gamma))[0] for gamma in gammas[1:]])
    return evidence(right, roots, found, labels="first row of Σ_l")


def bell(rate: float) -> np.ndarray:
    """``e^{−γ(i−j)²}``, a path whose Cholesky factors from the identity are non-negative."""
    lag = np.subtract.outer(np.arange(LENGTH), np.arange(LENGTH))
    return np.exp(-rate * lag**2)


def smallest_entries(effort: Effort) -> Evidence:
    """That negative entries occur: minus the smallest one is positive."""
    rates = (0.3, 0.5, 0.8)
    symmetric = [_root(bell(rate)).min() for rate in rates]
    causal = [np.linalg.cholesky(bell(rate))[np.tril_indices(LENGTH)].min() for rate in rates]
    schedule = [3.0, 1.0, 0.3, 0.1, 0.03]
    roots = [
        kp.espa(LENGTH, gammas=pair, causal=False, require_nonnegative=False).as_matrix().min()
        for pair in itertools.pairwise(schedule)
    ]
    return evidence(
        np.zeros(6),
        np.full(6, 0.001),
        [*(-value for value in symmetric), *causal],
        labels=[
            *(f"minus the smallest entry, symmetric root, rate {rate:g}" for rate in rates),
            *(f"smallest entry, Cholesky, rate {rate:g}" for rate in rates),
        ],
        finding=(
            "symmetric roots are not non-negative for every path that Cholesky factors keep non-negative: down to "
            f"{min(symmetric):.2e} for e^{{−γ(i−j)²}}, where the smallest Cholesky entry is {min(causal):.1e}; for "
            f"non-causal E-SPA along γ = {', '.join(f'{g:g}' for g in schedule)} the smallest entry is {min(roots):.2e}"
        ),
    )


def _root(kernel: np.ndarray) -> np.ndarray:
    values, vectors = np.linalg.eigh(kernel)
    return (vectors * np.sqrt(values)) @ vectors.T


CHECKS = (
    Check(
        id="he2023.non-causal-roots",
        statement="Without a mask, symmetric square roots carry the prescribed kernels.",
        formula="A_l = Σ_l^{1/2} Σ_{l−1}^{−1/2}: Σ_l = e^{−γ_l|i−j|}",
        source="section 3, attention without a causal mask",
        settings=f"T = {LENGTH}, L = {DEPTH}, γ = ∞, 1, 0.3, 0.1, 0.05",
        estimator="kp.propagate",
        tolerance=Exact(operations=600),
        control="the root of the kernel in the place of the kernel",
        measure=kernels_hit,
        quick=False,
    ),
    Check(
        id="he2023.non-causal-negative",
        statement="Symmetric roots can have negative entries where the Cholesky factor of the same kernel has none.",
        formula="min Σ^{1/2} < 0 ≤ min chol Σ, Σ_ij = e^{−γ(i−j)²}",
        source="section 3; says where the non-negativity of the causal case does not carry over",
        settings=f"T = {LENGTH}, Σ_0 = I, γ = 0.3, 0.5, 0.8",
        estimator="numpy's eigenvectors and Cholesky factor",
        tolerance=AtLeast(step=0.05, slack=1e-15),
        control="bounds that leave a gap of 0.001",
        measure=smallest_entries,
    ),
)
