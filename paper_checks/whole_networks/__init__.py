"""The closed-form gradient norms of whole networks against sampled ones."""

from paper_checks.check import Check
from paper_checks.whole_networks import gradient_profile, query_rows, score_path, width_rate

CHECKS: tuple[Check, ...] = (*gradient_profile.CHECKS, *width_rate.CHECKS, *query_rows.CHECKS, *score_path.CHECKS)
