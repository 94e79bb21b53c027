"""He et al. 2023, "Deep Transformers without Shortcuts" (arXiv 2302.10322)."""

from paper_checks.check import Check
from paper_checks.he2023 import (
    blow_up,
    closed_forms,
    kernel_path,
    non_causal,
    nonnegativity,
    normalised_residuals,
    rank_collapse,
    recursion,
    schedule,
    shaping,
    skipinit,
    softmax_form,
    table1,
    zero_queries,
)

CHECKS: tuple[Check, ...] = (
    *recursion.CHECKS,
    *closed_forms.CHECKS,
    *nonnegativity.CHECKS,
    *kernel_path.CHECKS,
    *softmax_form.CHECKS,
    *schedule.CHECKS,
    *rank_collapse.CHECKS,
    *skipinit.CHECKS,
    *normalised_residuals.CHECKS,
    *blow_up.CHECKS,
    *non_causal.CHECKS,
    *shaping.CHECKS,
    *table1.CHECKS,
    *zero_queries.CHECKS,
)
