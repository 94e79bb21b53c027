"""Residual branches scaled by ``1/√L``: the limit of infinite depth, and how it is approached."""

import numpy as np

import kernelprop as kp
from kernelprop.predictions import noci2022
from paper_checks.check import Check, Curve, Evidence, Plot, evidence
from paper_checks.effort import Effort
from paper_checks.fits import power_law
from paper_checks.tolerances import Exact, Rate, Remainder

LENGTH, ATTENTION, MLP = 6, 1.2, 0.7
DEPTHS = np.array([100, 200, 400])
DEEPEST = 4000


def propagated(depth: int, attention: float, mlp: float) -> tuple[np.ndarray, float]:
    """Sum of inner products and trace, and the mean cosine."""
    model = kp.Transformer(kp.uniform(LENGTH), depth, kp.MLP("linear"), kp.Residual((1, attention), (1, mlp)))
    evolution = kp.propagate(model, kp.kernels.identity(LENGTH), "last")
    last = evolution.kernels[0]
    return np.array([last.sum(), np.trace(last)]), float(evolution.mean_correlation[-1])


def rate(effort: Effort) -> Evidence:
    limit = np.array(noci2022.moments_at_infinite_depth(np.eye(LENGTH), ATTENTION, MLP))
    rest = np.stack([1 - propagated(n, ATTENTION / np.sqrt(n), MLP / np.sqrt(n))[0] / limit for n in DEPTHS])
    slopes = [power_law(DEPTHS, column) for column in rest.T]
    names = ("sum of inner products", "trace")
    curves = tuple(
        Curve(
            name,
            DEPTHS,
            rest[:, k],
            None,
            rest[-1, k] * DEPTHS[-1] / DEPTHS,
            rest[-1, k] * np.sqrt(DEPTHS[-1] / DEPTHS),
        )
        for k, name in enumerate(names)
    )
    return evidence(
        -1.0,
        -0.5,
        [slope.value for slope in slopes],
        labels=[f"exponent of the remainder of the {name}" for name in names],
        plot=Plot(curves, "L", "1 − value / limit", log_x=True, log_y=True),
    )


def limit(effort: Effort) -> Evidence:
    root = np.sqrt(DEEPEST)
    found, cosine = propagated(DEEPEST, ATTENTION / root, MLP / root)
    right = noci2022.moments_at_infinite_depth(np.eye(LENGTH), ATTENTION, MLP)
    grown = np.exp(ATTENTION**2)
    # Without the -1 of e^x − 1 in the trace: what a sum from 0 to L in the place of L − 1 leaves.
    wrong = (right.inner_products, np.exp(MLP**2) * LENGTH * (1 + grown / LENGTH), grown / (LENGTH + grown))
    return evidence(
        [*right, noci2022.limiting_cosine(LENGTH, ATTENTION)],
        wrong,
        [*found, cosine],
        labels=["sum of inner products", "trace", "mean cosine"],
        finding=f"the correlation stays at {cosine:.4f} at L = {DEEPEST}; with β = {ATTENTION} unscaled it is "
        f"{propagated(100, ATTENTION, MLP)[1]:.12f} at L = 100",
    )


def unscaled(effort: Effort) -> Evidence:
    """``1 − c`` of orthogonal inputs falls as ``(1+β₁²)^{−L}``, since 𝒞 outgrows the rest of the trace."""
    depths = (10, 20, 40)
    model = kp.Transformer(kp.uniform(LENGTH), depths[-1], kp.MLP("linear"), kp.Residual((1, ATTENTION), (1, MLP)))
    found = kp.propagate(model, kp.kernels.identity(LENGTH), "last").mean_correlation[list(depths)]
    grown = np.array([(1 + ATTENTION**2) ** n - 1 for n in depths])
    return evidence(
        grown / (LENGTH + grown),
        noci2022.limiting_cosine(LENGTH, ATTENTION),
        found,
        labels=[f"mean cosine at L = {n}" for n in depths],
    )


CHECKS = (
    Check(
        id="noci2022.depth-limit-rate",
        statement="With branches scaled by 1/√L the moments approach their limits as 1/L.",
        formula="1 − 𝒞_L/𝒞_∞ ∝ L⁻¹",
        source="section 3, the corollary on depth-scaled residual branches",
        settings=f"T = {LENGTH}, β̃₁ = {ATTENTION}, β̃₂ = {MLP}, Σ_0 = I, L = 100, 200, 400",
        estimator="kp.propagate; a fitted slope",
        tolerance=Rate(step=0.1, allowance=0.02, because="the next order, (β̃⁴)/L² of the remainder at L = 100"),
        control="an exponent of −1/2",
        measure=rate,
    ),
    Check(
        id="noci2022.depth-limit",
        statement="With branches scaled by 1/√L moments and correlation have limits, the latter below 1.",
        formula="𝒞 → e^{β̃₁²+β̃₂²}𝒞_0, tr → e^{β̃₂²}(tr_0 + (𝒞_0/T)(e^{β̃₁²}−1)), cosine → (e^{β̃₁²}−1)/(T−1+e^{β̃₁²})",
        source="section 3, the corollary on depth-scaled residual branches",
        settings=f"T = {LENGTH}, β̃₁ = {ATTENTION}, β̃₂ = {MLP}, Σ_0 = I, L = {DEEPEST}",
        estimator="kp.propagate",
        tolerance=Remainder(1.5 * (ATTENTION**4 + MLP**4) / (2 * DEEPEST), "β̃⁴/(2L), the remainder of (1 + β̃²/L)^L"),
        control="e^{β̃₁²} in the place of e^{β̃₁²} − 1",
        measure=limit,
    ),
    Check(
        id="noci2022.unscaled-collapse",
        statement="Without the depth scaling the correlation tends to 1, geometrically.",
        formula="cosine_L = ((1+β₁²)^L − 1)/(T − 1 + (1+β₁²)^L) for Σ_0 = I",
        source="section 3, rank collapse in spite of skips",
        settings=f"T = {LENGTH}, β₁ = {ATTENTION}, β₂ = {MLP}, Σ_0 = I, L = 10, 20, 40",
        estimator="kp.propagate",
        tolerance=Exact(operations=400),
        control="the limit with depth scaling",
        measure=unscaled,
    ),
)
