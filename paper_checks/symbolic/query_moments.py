"""The Gaussian moments behind the query norm, for every length, width and correlation."""

from collections.abc import Iterator

import sympy as sp

from paper_checks.check import Check, Evidence
from paper_checks.effort import Effort
from paper_checks.symbolic.identity import identities
from paper_checks.tolerances import Exact

T, D, RHO, N = sp.symbols("T d rho n", positive=True)


def pairings(items: tuple[int, ...]) -> Iterator[tuple[tuple[int, int], ...]]:
    """All ways to pair them up."""
    if not items:
        yield ()
        return
    for k in range(1, len(items)):
        for rest in pairings(items[1:k] + items[k + 1 :]):
            yield ((items[0], items[k]), *rest)


def moment(rows: tuple[int, ...], columns: tuple[int, ...]) -> sp.Expr:
    """``E Π_k z[rows_k, columns_k]``, summed over all indices, for an ``n × d`` matrix of independent N(0, 1).

    Isserlis' theorem: each pairing of the factors sets the indices of its pairs equal; what stays free is summed, one
    factor ``n`` for each class of row indices, ``d`` for each of column indices.
    """
    total = sp.Integer(0)
    for pairing in pairings(tuple(range(len(rows)))):
        total += N ** _classes(rows, pairing) * D ** _classes(columns, pairing)
    return sp.expand(total)


def _classes(names: tuple[int, ...], pairing: tuple[tuple[int, int], ...]) -> int:
    """The number of different indices once those of each pair are equal."""
    parent = {name: name for name in names}

    def root(name: int) -> int:
        while parent[name] != name:
            name = parent[name]
        return name

    for one, other in pairing:
        parent[root(names[one])] = root(names[other])
    return len({root(name) for name in parent})


def measure(effort: Effort) -> Evidence:
    """``ZᵀZ`` with ``n = T − 1`` centred rows of variance ``1 − ρ``; the common part is independent of it.

    ``‖ZᵀZ‖² = z_ia z_ib z_ja z_jb`` summed; ``‖X‖²`` adds ``z_kc²`` and the common part's ``d(1 + (T−1)ρ)``.
    """
    square = moment((0, 0, 1, 1), (0, 1, 0, 1))
    with_trace = moment((0, 0, 1, 1, 2, 2), (0, 1, 0, 1, 2, 2))
    apart = 1 - RHO
    derived = (apart**3 * with_trace + apart**2 * D * (1 + (T - 1) * RHO) * square).subs(N, T - 1) / T**2
    claimed = (T - 1) * D * (T + D) * apart**2 * (T * D + 4 * apart) / T**2
    leading = (T - 1) * D * (T + D) * apart**2 * D / T
    points = [{T: 4, D: 3, RHO: sp.Rational(1, 5)}, {T: 2, D: 2, RHO: 0}, {T: 7, D: 5, RHO: sp.Rational(9, 10)}]
    claims = [
        ("E‖ZᵀZ‖²", (N * D * (N + D + 1)).subs(N, T - 1), square.subs(N, T - 1), (N * D * (N + D)).subs(N, T - 1)),
        (
            "E‖Z‖²‖ZᵀZ‖²",
            (N * D * (N + D + 1) * (N * D + 4)).subs(N, T - 1),
            with_trace.subs(N, T - 1),
            (N * D * (N + D + 1) * N * D).subs(N, T - 1),
        ),
        ("query norm", claimed, derived, leading),
    ]
    return identities(claims, points)


CHECKS = (
    Check(
        id="symbolic.query-moments",
        statement="The expected query norm for Gaussian inputs is exact in T, d and ρ.",
        formula="E‖X‖²‖XᵀCX‖²/T² = d(T−1)(T+d)(1−ρ)²(Td + 4(1−ρ))/T², from E‖ZᵀZ‖² = nd(n+d+1), "
        "E‖Z‖²‖ZᵀZ‖² = nd(n+d+1)(nd+4)",
        source="behind Noci et al. 2022, section 3",
        settings="symbols T, d, ρ; evaluated at three points",
        estimator="Isserlis' theorem: all pairings of the factors, free indices counted; sympy",
        tolerance=Exact(),
        control="the leading order; the moments without their last terms",
        measure=measure,
    ),
)
