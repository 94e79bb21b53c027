"""Signal-preserving attention is non-negative under the right ordering, and only under it."""

import numpy as np
from scipy.optimize import brentq

import kernelprop as kp
from paper_checks.check import Check, Evidence, evidence
from paper_checks.effort import Effort
from paper_checks.he2023.closed_forms import LENGTH as CLOSED_LENGTH
from paper_checks.he2023.closed_forms import espa_matrix, solved, uspa_factor
from paper_checks.tolerances import AtLeast, Exact, Remainder

LENGTH = 8
RATES = np.geomspace(3.0, 0.01, 7)
CORRELATIONS = np.linspace(0.0, 0.95, 7)
WRONG_RATES, WRONG_CORRELATIONS = (0.2, 1.0), (0.6, 0.2)


def smallest(before: np.ndarray, after: np.ndarray) -> float:
    """The smallest entry on and below the diagonal, from a Cholesky solve."""
    return float(solved(before, after)[np.tril_indices(LENGTH)].min())


def over_pairs(make, values: np.ndarray, name: str) -> Evidence:
    kernels = [make(LENGTH, value) for value in values]
    pairs = [(i, j) for j in range(len(values)) for i in range(j)]
    found = [smallest(kernels[i], kernels[j]) for i, j in pairs]
    i, j = pairs[int(np.argmin(found))]
    label = f"smallest entry of {len(pairs)} matrices, at {name} {values[i]:.3g} → {values[j]:.3g}"
    return evidence([0.0], [0.01], [min(found)], labels=label)


def espa(effort: Effort) -> Evidence:
    return over_pairs(kp.kernels.exponential, RATES, "γ")


def uspa(effort: Effort) -> Evidence:
    return over_pairs(kp.kernels.equicorrelated, CORRELATIONS, "ρ")


def thresholds(effort: Effort) -> Evidence:
    """Where the smallest entry of one layer crosses zero, as the later over the earlier parameter."""
    cases = [("γ", kp.kernels.exponential, rate) for rate in (1.0, 0.3, 0.1)]
    cases += [("ρ", kp.kernels.equicorrelated, correlation) for correlation in (0.2, 0.5, 0.8)]
    found, lows = [], []
    for name, make, before in cases:
        start = make(LENGTH, before)
        found.append(brentq(lambda ratio, k=start, b=before, m=make: smallest(k, m(LENGTH, ratio * b)), 0.9, 1.1))
        lows.append(f"{name} {before:g}: {smallest(start, make(LENGTH, before * (1.1 if name == 'γ' else 0.9))):.4f}")
    return evidence(
        1.0,
        1.02,
        found,
        labels=[f"{name}_l/{name}_{{l−1}} from {before:g}" for name, _, before in cases],
        finding="a tenth on the wrong side of the ordering the smallest entries are " + ", ".join(lows),
    )


def wrong_order(effort: Effort) -> Evidence:
    """Every entry of one layer each in the wrong order, by the closed forms; and that no softmax form is made of it."""
    cases = (
        ("E-SPA", kp.kernels.exponential, WRONG_RATES, espa_matrix(*WRONG_RATES)),
        (
            "U-SPA",
            kp.kernels.equicorrelated,
            WRONG_CORRELATIONS,
            uspa_factor(WRONG_CORRELATIONS[1]) @ np.linalg.inv(uspa_factor(WRONG_CORRELATIONS[0])),
        ),
    )
    below = np.tril_indices(CLOSED_LENGTH, -1)
    right = np.stack([closed[below] for *_, closed in cases])
    found = np.stack([solved(make(CLOSED_LENGTH, a), make(CLOSED_LENGTH, b))[below] for _, make, (a, b), _ in cases])
    counts = [
        f"{np.sum(row < 0)} of {len(row)} entries below the diagonal ({name})"
        for row, (name, *_) in zip(found, cases, strict=True)
    ]
    refused = [
        _refused(lambda: kp.espa(CLOSED_LENGTH, gammas=WRONG_RATES)),
        _refused(lambda: kp.uspa(CLOSED_LENGTH, rhos=WRONG_CORRELATIONS)),
    ]
    return evidence(
        [*right.ravel(), 1.0, 1.0],
        [*np.maximum(right, 0).ravel(), 1.0, 1.0],
        [*found.ravel(), *refused],
        labels=[
            *(f"{name} A[{i}, {j}]" for name, *_ in cases for i, j in zip(*below, strict=True)),
            *(f"{name} refused" for name, *_ in cases),
        ],
        finding=f"in the wrong order negative are {' and '.join(counts)}",
    )


def _refused(make) -> float:
    """Whether the operator with a softmax form is an error that names the entry."""
    try:
        make()
    except ValueError as error:
        return float("layer 1" in str(error))
    return 0.0


CHECKS = (
    Check(
        id="he2023.espa-nonnegative",
        statement="E-SPA attention has no negative entry while the decay rate falls.",
        formula="A_ij ≥ 0 for γ_l ≤ γ_{l−1}",
        source="section 4, the theorem on non-negativity",
        settings=f"T = {LENGTH}, all falling pairs of 7 rates from {RATES[0]:g} to {RATES[-1]:g}",
        estimator="the smallest entry on and below the diagonal of a Cholesky solve",
        tolerance=AtLeast(step=0.02),
        control="every entry at least 0.01",
        measure=espa,
    ),
    Check(
        id="he2023.uspa-nonnegative",
        statement="U-SPA attention has no negative entry while the correlation rises.",
        formula="A_ij ≥ 0 for ρ_l ≥ ρ_{l−1}",
        source="section 4, the theorem on non-negativity",
        settings=f"T = {LENGTH}, all rising pairs of 7 correlations from 0 to {CORRELATIONS[-1]:g}",
        estimator="the smallest entry on and below the diagonal of a Cholesky solve",
        tolerance=AtLeast(step=0.02),
        control="every entry at least 0.01",
        measure=uspa,
    ),
    Check(
        id="he2023.ordering-threshold",
        statement="The ordering is sharp: the smallest entry turns negative just where the parameter stops moving.",
        formula="min A_ij = 0 at γ_l/γ_{l−1} = 1 and ρ_l/ρ_{l−1} = 1",
        source="section 4, the condition of the theorem",
        settings=f"T = {LENGTH}, three rates and three correlations",
        estimator="the root of the smallest entry as a function of the ratio, by Brent's method",
        tolerance=Remainder(1e-9, "the tolerance of the root"),
        control="a threshold at 1.02",
        measure=thresholds,
    ),
    Check(
        id="he2023.wrong-ordering",
        statement="In the wrong order entries turn negative, by the same closed forms; no softmax has them.",
        formula="γ_l > γ_{l−1}: e^{−γ_l} − e^{−γ_{l−1}} < 0; ρ_l < ρ_{l−1}: A_ij < 0",
        source="section 4, the condition of the theorem",
        settings=f"T = {CLOSED_LENGTH}, γ from {WRONG_RATES[0]} to {WRONG_RATES[1]}, ρ from {WRONG_CORRELATIONS[0]} to "
        f"{WRONG_CORRELATIONS[1]}, every entry below the diagonal",
        estimator="numpy's Cholesky factors and a triangular solve; whether kp.espa and kp.uspa refuse",
        tolerance=Exact(),
        control="negative entries replaced by 0",
        measure=wrong_order,
    ),
)
