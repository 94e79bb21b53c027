"""Value, output and both MLP rows: exact at infinite width for any activation and norm."""

from functools import partial

import numpy as np

import kernelprop as kp
from paper_checks.check import Check, Curve, Evidence, Plot, evidence
from paper_checks.effort import Effort
from paper_checks.tolerances import Statistical
from paper_checks.whole_networks import widths
from paper_checks.whole_networks.networks import DEPTH, KERNEL, LENGTH, NETWORKS

ROWS = ("value", "output", "mlp_in", "mlp_out")
THREE, SEED = (16, 32, 64), 101


def profile(name: str, effort: Effort) -> Evidence:
    """The limit of three widths."""
    return compared(name, THREE, 40_000, 1.05)


def coarse(effort: Effort) -> Evidence:
    return compared("relu", (32, 64), effort.draws(2000, 24_000), 1.15)


def compared(name: str, sizes: tuple[int, ...], draws: int, stronger: float) -> Evidence:
    network = NETWORKS[name]
    found = widths.measured(network.model(), KERNEL, ROWS, sizes, draws, SEED)
    right, wrong = (
        widths.predicted(kp.gradient_norms(network.model(0.6 * factor), KERNEL), ROWS) for factor in (1, stronger)
    )
    curves = tuple(
        Curve(label, found.widths, found.mean[:, k] / right[k], found.stderr[:, k] / right[k], np.ones(len(sizes)))
        for k, label in enumerate(widths.labels(ROWS, DEPTH))
        if label.endswith("layer 1") or label == "mlp out, layer 2"
    )
    rest = found.mean[0] / right - 1
    worst = int(np.argmax(np.abs(rest)))
    return evidence(
        right,
        wrong,
        found.law.limit.mean,
        found.law.limit.stderr,
        labels=[f"limit of {label}" for label in widths.labels(ROWS, DEPTH)],
        draws=draws,
        seed=SEED,
        plot=Plot(curves, "width d", "measured / predicted", log_x=True),
        finding=(
            f"at d = {sizes[0]} the furthest row ({widths.labels(ROWS, DEPTH)[worst]}) is {100 * rest[worst]:+.1f} % "
            f"off the infinite width; χ² per degree of freedom of limit + slope/d: {np.nanmax(found.law.misfit):.2f}"
            if len(sizes) > 2
            else ""
        ),
    )


def _check(name: str, measure, sizes: tuple[int, ...], stronger: float, quick: bool) -> Check:
    words = NETWORKS[name.removesuffix("-coarse")].words
    return Check(
        id=f"whole_networks.profile-{name}",
        statement=f"Closed-form gradient norms of values, outputs and both MLP matrices in a whole network: {words}.",
        formula="W_V: ⟨Aᵀβ₁²GA, Σ⟩, W_O: β₁²⟨AΣAᵀ, G⟩, W₁: ⟨Σ_Z, β₂²G∘K̇⟩, W₂: eβ₂²⟨K, G⟩, times d²",
        source="this toolkit's backward recursion",
        settings=f"T = {LENGTH}, L = {DEPTH}, α = 0.8, β = 0.6, peaked softmax matrices, widths "
        f"{', '.join(map(str, sizes))}, G_L = I",
        estimator="kp.simulate at each width, the limit of measured = limit + slope/d",
        tolerance=Statistical(),
        quick_tolerance=Statistical(percent=25),
        control=f"branches {100 * (stronger - 1):.0f} % stronger",
        measure=measure,
        quick=quick,
    )


CHECKS = (
    *(_check(name, partial(profile, name), THREE, 1.05, False) for name in NETWORKS),
    _check("relu-coarse", coarse, (32, 64), 1.15, True),
)
