"""The identities behind the statements, proved with sympy."""

from paper_checks.check import Check
from paper_checks.symbolic import arc_cosine, cholesky, depth_sums, ordering, query_moments

CHECKS: tuple[Check, ...] = (
    *query_moments.CHECKS,
    *cholesky.CHECKS,
    *ordering.CHECKS,
    *arc_cosine.CHECKS,
    *depth_sums.CHECKS,
)
