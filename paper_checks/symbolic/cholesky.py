"""The closed forms of E-SPA and U-SPA for T = 2 to 5."""

import sympy as sp

from paper_checks.check import Check, Evidence
from paper_checks.effort import Effort
from paper_checks.symbolic.identity import identities
from paper_checks.tolerances import Exact

X, Y = sp.symbols("x y", positive=True)
RHO = sp.symbols("rho", positive=True)
LENGTHS = (2, 3, 4, 5)


def espa(effort: Effort) -> Evidence:
    """``A F_{l−1} = F_l``; ``F_i0 = x^i, F_ij = a x^{i−j}``, ``x = e^{−γ}``, ``a² = 1 − x²``, ``F Fᵀ`` the kernel."""
    before, after = sp.symbols("a b", positive=True)
    ratio = after / before
    claims = []
    for length in LENGTHS:
        lower, upper = (_factor(length, base, scale) for base, scale in ((X, before), (Y, after)))
        kernel = (lower * lower.T).applyfunc(lambda e: sp.expand(sp.expand(e).subs(before**2, 1 - X**2)))
        product = _attention(length, ratio, ratio) * lower
        wrong = _attention(length, ratio, sp.Integer(1)) * lower
        # The rows above are the last rows of shorter lengths.
        i = length - 1
        for j in range(length):
            claims.append((f"T = {length}: (A F)[{i}, {j}]", upper[i, j], sp.expand(product[i, j]), wrong[i, j]))
            claims.append((f"T = {length}: (F Fᵀ)[{i}, {j}]", X ** (i - j), kernel[i, j], X ** (i - j + 1)))
    half = sp.Rational(1, 2)
    point = {X: sp.Rational(1, 3), Y: half, before: sp.sqrt(1 - sp.Rational(1, 9)), after: sp.sqrt(1 - half**2)}
    return identities(claims, [point])


def _factor(length: int, base: sp.Symbol, scale: sp.Symbol) -> sp.Matrix:
    return sp.Matrix(length, length, lambda i, j: 0 if j > i else (base**i if j == 0 else scale * base ** (i - j)))


def _attention(length: int, r: sp.Expr, first: sp.Expr) -> sp.Matrix:
    """The closed form; ``first`` stands for ``r`` in the first column."""

    def entry(i: int, j: int) -> sp.Expr:
        if j > i:
            return sp.Integer(0)
        if i == j:
            return r if i else sp.Integer(1)
        if j == 0:
            return Y ** (i - 1) * (Y - first * X)
        return r * Y ** (i - j - 1) * (Y - X)

    return sp.Matrix(length, length, entry)


def uspa(effort: Effort) -> Evidence:
    """``F Fᵀ = (1−ρ)I + ρ11ᵀ``: only products of two entries of one column occur, which are rational."""
    claims = []
    for length in LENGTHS:
        i = length - 1
        for j in range(length):
            found = sum(_product(i, j, m, 0) for m in range(min(i, j) + 1))
            wrong = sum(_product(i, j, m, 1) for m in range(min(i, j) + 1))
            target = sp.Integer(1) if i == j else RHO
            claims.append((f"T = {length}: (F Fᵀ)[{i}, {j}]", target, sp.cancel(found), wrong))
    return identities(claims, [{RHO: sp.Rational(2, 5)}])


def _product(i: int, j: int, m: int, shift: int) -> sp.Expr:
    """``F_im F_jm``; ``shift`` moves the index that the closed form counts with."""
    k = m + shift
    before, upto = 1 + (k - 1) * RHO, 1 + k * RHO
    if i == j == m:
        return (1 - RHO) * upto / before
    if m < min(i, j):
        return RHO**2 * (1 - RHO) / (before * upto)
    # The diagonal times the entry below it: the roots multiply to ρ(1−ρ)/(1+(k−1)ρ).
    return RHO * (1 - RHO) / before


CHECKS = (
    Check(
        id="symbolic.cholesky-espa",
        statement="E-SPA's closed form takes one Cholesky factor to the next.",
        formula="A F(x) = F(y), F Fᵀ = x^|i−j|, x = e^{−γ_{l−1}}, y = e^{−γ_l}",
        source="behind He et al. 2023, section 4",
        settings="T = 2, 3, 4, 5; symbols x, y",
        estimator="sympy, with a² = 1 − x²",
        tolerance=Exact(),
        control="the factor r left out of the first column; kernels shifted by one",
        measure=espa,
    ),
    Check(
        id="symbolic.cholesky-uspa",
        statement="U-SPA's Cholesky factor in closed form.",
        formula="F Fᵀ = (1−ρ)I + ρ11ᵀ",
        source="behind He et al. 2023, section 4",
        settings="T = 2, 3, 4, 5; symbol ρ",
        estimator="sympy",
        tolerance=Exact(),
        control="positions counted from 1",
        measure=uspa,
    ),
)
