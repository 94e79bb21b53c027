"""Dong et al. 2021, "Attention is not all you need" (arXiv 2103.03404)."""

from paper_checks.check import Check
from paper_checks.dong2021 import bound, cubic_law, double_exponential, floor

CHECKS: tuple[Check, ...] = (*cubic_law.CHECKS, *double_exponential.CHECKS, *bound.CHECKS, *floor.CHECKS)
