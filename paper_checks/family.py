"""The failure probability of all statistical checks together, and what is left of it for one comparison."""

from scipy import stats

# The probability that a full run reports a failure although every statement is true.
FAILURE = 1e-3
# Comparisons with a standard error that a run may make (Bonferroni); a run that makes more is refused.
COMPARISONS = 600
# The probability that a prediction off by a check's resolution is rejected, for each of its entries.
POWER = 0.999


def critical(draws: int) -> float:
    """The standard errors by which a true prediction may be missed: Student's quantile of ``draws − 1``."""
    return float(stats.t.isf(FAILURE / COMPARISONS / 2, max(draws - 1, 1)))


def power_margin() -> float:
    """The standard errors by which a wrong prediction must stand outside to be rejected with the stated power."""
    return float(stats.norm.ppf(POWER))
