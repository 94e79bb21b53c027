"""The geometric sums of the depth recursion, and their limit."""

import sympy as sp

from paper_checks.check import Check, Evidence
from paper_checks.effort import Effort
from paper_checks.symbolic.identity import identities
from paper_checks.tolerances import Exact

A, B, TOTAL, TRACE, T = sp.symbols("a b C tau T", positive=True)
L = sp.symbols("L", positive=True, integer=True)


def total(depth: sp.Expr) -> sp.Expr:
    """``𝒞_L`` with ``a = β₁²``, ``b = β₂²``."""
    return ((1 + A) * (1 + B)) ** depth * TOTAL


def trace(depth: sp.Expr) -> sp.Expr:
    """``tr Σ_L``."""
    return (1 + B) ** depth * (TRACE + TOTAL / T * ((1 + A) ** depth - 1))


def measure(effort: Effort) -> Evidence:
    """One step of the recursion takes the closed form at ``L`` to that at ``L + 1``; at 0 it is the start."""
    step_total = (1 + B) * (1 + A) * total(L)
    step_trace = (1 + B) * (trace(L) + A * total(L) / T)
    x = sp.symbols("X", positive=True)
    limit = sp.limit((1 + A / x) ** x, x, sp.oo)
    claims = [
        ("𝒞_{L+1}", sp.expand(total(L + 1)), sp.expand(step_total), total(L)),
        (
            "tr Σ_{L+1}",
            sp.powsimp(sp.expand(trace(L + 1))),
            sp.powsimp(sp.expand(step_trace)),
            (1 + B) * (trace(L) + A * total(L) / T**2),
        ),
        ("tr Σ_0", TRACE, trace(sp.Integer(0)), TRACE + TOTAL / T),
        ("(1 + β̃²/L)^L", sp.exp(A), limit, 1 + A),
    ]
    half, third = sp.Rational(1, 2), sp.Rational(1, 3)
    return identities(claims, [{A: half, B: third, TOTAL: 5, TRACE: 4, T: 4, L: 3}])


CHECKS = (
    Check(
        id="symbolic.depth-sums",
        statement="The closed forms of inner products and trace solve the depth recursion, and have the stated limit.",
        formula="𝒞_{L+1} = (1+β₁²)(1+β₂²)𝒞_L, tr_{L+1} = (1+β₂²)(tr_L + β₁²𝒞_L/T); (1+β̃²/L)^L → e^{β̃²}",
        source="behind Noci et al. 2022, section 3",
        settings="symbols β₁², β₂², 𝒞_0, tr Σ_0, T, L",
        estimator="sympy",
        tolerance=Exact(),
        control="terms left out",
        measure=measure,
    ),
)
