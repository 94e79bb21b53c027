"""Noci et al. 2022, "Signal Propagation in Transformers" (arXiv 2206.03126)."""

from paper_checks.check import Check
from paper_checks.noci2022 import (
    collapse,
    depth_limit,
    gaussian_inputs,
    growth,
    jacobians,
    moments,
    norms_against_depth,
    relu,
    temperature,
)

CHECKS: tuple[Check, ...] = (
    *jacobians.CHECKS,
    *collapse.CHECKS,
    *growth.CHECKS,
    *gaussian_inputs.CHECKS,
    *moments.CHECKS,
    *depth_limit.CHECKS,
    *relu.CHECKS,
    *temperature.CHECKS,
    *norms_against_depth.CHECKS,
)
