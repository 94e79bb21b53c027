"""The arc-cosine kernel: its derivative by the correlation is the dual of the derivative."""

import sympy as sp

from paper_checks.check import Check, Evidence
from paper_checks.effort import Effort
from paper_checks.symbolic.identity import identities
from paper_checks.tolerances import Exact

C, S = sp.symbols("c s", real=True)


def measure(effort: Effort) -> Evidence:
    relu = (sp.sqrt(1 - C**2) + C * (sp.pi - sp.acos(C))) / (2 * sp.pi)
    slope = (sp.pi - sp.acos(C)) / (2 * sp.pi)
    leaky = C + (1 - S) ** 2 / (sp.pi * (1 + S**2)) * (sp.sqrt(1 - C**2) - C * sp.acos(C))
    leaky_slope = 1 - (1 - S) ** 2 / (sp.pi * (1 + S**2)) * sp.acos(C)
    # φ = s x + (1 − s) max(x, 0): E φφ = s² c + 2 s(1−s) c/2 + (1−s)² K, scaled by 2/(1+s²).
    assembled = 2 / (1 + S**2) * (S**2 * C + S * (1 - S) * C + (1 - S) ** 2 * relu)
    claims = [
        ("ReLU: dK/dc", slope, sp.diff(relu, C), (sp.pi - sp.asin(C)) / (2 * sp.pi)),
        ("leaky ReLU: C(c)", leaky, assembled, C + (1 - S) ** 2 / (sp.pi * (1 + S**2)) * sp.sqrt(1 - C**2)),
        ("leaky ReLU: dC/dc", leaky_slope, sp.diff(leaky, C), 1 - (1 - S) / (sp.pi * (1 + S**2)) * sp.acos(C)),
    ]
    return identities(
        claims, [{C: sp.Rational(1, 2), S: sp.Rational(1, 5)}, {C: -sp.Rational(1, 3), S: sp.Rational(2, 3)}]
    )


CHECKS = (
    Check(
        id="symbolic.arc-cosine",
        statement="The derivative of the arc-cosine kernel by the correlation is the kernel of the ReLU's derivative.",
        formula="K = (√(1−c²) + c(π − arccos c))/(2π), dK/dc = K̇ = (π − arccos c)/(2π); and for leaky ReLUs",
        source="behind the MLP rows of the backward recursion and the C maps of He et al. 2023",
        settings="symbols c, s",
        estimator="sympy",
        tolerance=Exact(),
        control="arcsin in the place of arccos; terms left out",
        measure=measure,
    ),
)
