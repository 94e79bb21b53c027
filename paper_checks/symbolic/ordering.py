"""Non-negativity of every entry under the ordering, for every length: the signs of a few factors."""

from typing import Any

import sympy as sp

from paper_checks.check import Check, Evidence
from paper_checks.effort import Effort
from paper_checks.symbolic.identity import identities
from paper_checks.tolerances import Exact

X, Y, K, BEFORE, AFTER = sp.symbols("x y k rho r", positive=True)


def espa(effort: Effort) -> Evidence:
    """Below the diagonal the sign is that of ``y − x``, in the first column of ``y − r x``, so of ``y² − r²x²``."""
    first = sp.together(Y**2 - X**2 * (1 - Y**2) / (1 - X**2))
    claims = [
        (
            "y² − r²x²",
            (Y - X) * (Y + X) / (1 - X**2),
            first,
            (Y - X) * (Y + X),
        )
    ]
    points = [{X: sp.Rational(1, 3), Y: sp.Rational(1, 2)}, {X: sp.Rational(1, 2), Y: sp.Rational(1, 3)}]
    return identities(claims, points)


def p(index: Any, rho: Any) -> Any:
    return 1 + index * rho


def uspa(effort: Effort) -> Evidence:
    """Entry ``(i, j)`` is positive times ``D_ij = r p_{j−1}/g_j − Σ_{j<m<i} ρr/g_m − ρ p'_i/g_i``.

    ``p_k = 1 + kρ``, ``p'_k = 1 + kr``, ``g_m² = p_{m−1}p_m p'_{m−1}p'_m``. (1) ``D`` falls with ``j`` while
    ``p_j/p'_j`` does; (2) it falls to ``D_{i,i−1}``, whose sign is that of ``r² p_{i−2}p_i − ρ² p'_{i−2}p'_i``. Both
    have the sign of ``r − ρ``.
    """
    step = sp.together(p(K - 2, BEFORE) / p(K - 2, AFTER) - p(K, BEFORE) / p(K, AFTER))
    last = AFTER**2 * p(K - 2, BEFORE) * p(K, BEFORE) - BEFORE**2 * p(K - 2, AFTER) * p(K, AFTER)
    claims = [
        (
            "fall of p_j/p'_j",
            2 * (AFTER - BEFORE) / (p(K - 2, AFTER) * p(K, AFTER)),
            step,
            (AFTER - BEFORE) / p(K, AFTER),
        ),
        (
            "next to the diagonal",
            (AFTER - BEFORE) * (AFTER + BEFORE + 2 * (K - 1) * AFTER * BEFORE),
            last,
            (AFTER - BEFORE) * (AFTER + BEFORE),
        ),
    ]
    third, half = sp.Rational(1, 3), sp.Rational(1, 2)
    return identities(claims, [{BEFORE: third, AFTER: half, K: 4}, {BEFORE: half, AFTER: third, K: 2}])


def entries(effort: Effort) -> Evidence:
    """That ``D_ij`` is the entry: against ``F_l F_{l−1}⁻¹`` for T = 2 … 5, at rational points in 30 digits."""
    third, half = sp.Rational(1, 3), sp.Rational(1, 2)
    scale = sp.sqrt((1 - half) / (1 - third))
    claims = []
    for length in (2, 3, 4, 5):
        attention = _factor(length, half) * _factor(length, third).inv()
        i = length - 1
        for j in range(i):
            claimed, derived = sp.N(_combination(i, j, third, half), 40), sp.N(attention[i, j] / scale, 40)
            # Roots of different numbers stay roots: equal to 30 digits counts as proved at this point.
            equal = claimed if abs(claimed - derived) < sp.Float("1e-30") else sp.nan
            claims.append((f"T = {length}: D[{i}, {j}]", claimed, equal, derived * sp.Rational(11, 10)))
    return identities(claims, [{}])


def _combination(i: int, j: int, rho: Any, r: Any) -> Any:
    def g(m: int) -> Any:
        return sp.sqrt(p(m - 1, rho) * p(m, rho) * p(m - 1, r) * p(m, r))

    between = sum((rho * r / g(m) for m in range(j + 1, i)), sp.Integer(0))
    return r * p(j - 1, rho) / g(j) - between - rho * p(i, r) / g(i)


def _factor(length: int, rho: Any) -> Any:
    def entry(i: int, m: int) -> Any:
        if m > i:
            return sp.Integer(0)
        if m == i:
            return sp.sqrt((1 - rho) * p(m, rho) / p(m - 1, rho))
        return rho * sp.sqrt((1 - rho) / (p(m - 1, rho) * p(m, rho)))

    return sp.Matrix(length, length, entry)


CHECKS = (
    Check(
        id="symbolic.ordering-espa",
        statement="Every entry of E-SPA attention is non-negative for γ_l ≤ γ_{l−1}, at every length.",
        formula="A_ij ∝ y − x; A_i0 ∝ y − rx with y² − r²x² = (y−x)(y+x)/(1−x²); x = e^{−γ_{l−1}}, y = e^{−γ_l}",
        source="behind He et al. 2023, section 4, the theorem on non-negativity",
        settings="symbols x, y; evaluated on both sides of the ordering",
        estimator="sympy",
        tolerance=Exact(),
        control="without the denominator 1 − x²",
        measure=espa,
    ),
    Check(
        id="symbolic.ordering-uspa",
        statement="Every entry of U-SPA attention is non-negative for ρ_l ≥ ρ_{l−1}, at every length.",
        formula="p_{k−2}/p'_{k−2} − p_k/p'_k = 2(r−ρ)/(p'_{k−2}p'_k); r²p_{i−2}p_i − ρ²p'_{i−2}p'_i = "
        "(r−ρ)(r+ρ+2(i−1)rρ)",
        source="behind He et al. 2023, section 4, the theorem on non-negativity",
        settings="symbols ρ = ρ_{l−1}, r = ρ_l and the position; evaluated on both sides of the ordering",
        estimator="sympy",
        tolerance=Exact(),
        control="factors left out",
        measure=uspa,
    ),
    Check(
        id="symbolic.ordering-uspa-entries",
        statement="The entries of U-SPA attention are the combination whose sign that settles.",
        formula="A_ij = √((1−r)/(1−ρ)) (r p_{j−1}/g_j − Σ_{j<m<i} ρr/g_m − ρ p'_i/g_i)",
        source="behind He et al. 2023, section 4",
        settings="T = 2, 3, 4, 5, the last row; ρ = 1/3, r = 1/2",
        estimator="sympy, F_l F_{l−1}⁻¹ in 40 digits",
        tolerance=Exact(),
        control="entries a tenth larger",
        measure=entries,
    ),
)
