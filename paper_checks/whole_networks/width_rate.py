"""What a finite width adds falls as ``1/d``."""

import numpy as np

import kernelprop as kp
from paper_checks.check import Check, Curve, Evidence, Plot, evidence
from paper_checks.effort import Effort
from paper_checks.fits import power_law
from paper_checks.tolerances import Rate
from paper_checks.whole_networks import widths
from paper_checks.whole_networks.networks import DEPTH, KERNEL, LENGTH, NETWORKS

ROWS, SIZES, SEED = ("mlp_in", "mlp_out"), (12, 24, 48), 211


def measure(effort: Effort) -> Evidence:
    """Under Post-LN and tanh the last layer's MLP rows have the largest remainder: the best seen."""
    draws = 60_000
    model = NETWORKS["post-ln-tanh"].model()
    found = widths.measured(model, KERNEL, ROWS, SIZES, draws, SEED)
    right = widths.predicted(kp.gradient_norms(model, KERNEL), ROWS)
    rest = 1 - found.mean / right
    last = [k for k in range(len(right)) if k % DEPTH == DEPTH - 1]
    slopes = [power_law(found.widths, rest[:, k], found.stderr[:, k] / right[k]) for k in last]
    names = [widths.labels(ROWS, DEPTH)[k] for k in last]
    curves = tuple(
        Curve(
            name,
            found.widths,
            rest[:, k],
            found.stderr[:, k] / right[k],
            rest[0, k] * found.widths[0] / found.widths,
            rest[0, k] * np.sqrt(found.widths[0] / found.widths),
        )
        for k, name in zip(last, names, strict=True)
    )
    return evidence(
        -1.0,
        -0.5,
        [slope.value for slope in slopes],
        [slope.stderr for slope in slopes],
        labels=[f"exponent of the remainder of {name}" for name in names],
        draws=draws,
        seed=SEED,
        plot=Plot(curves, "width d", "1 − measured / predicted", log_x=True, log_y=True),
    )


CHECKS = (
    Check(
        id="whole_networks.width-rate",
        statement="What sampled networks lack of the closed form falls as one over the width.",
        formula="1 − measured/predicted ∝ d⁻¹; that its limit is 0 is whole_networks.profile-post-ln-tanh",
        source="this toolkit's backward recursion",
        settings=f"T = {LENGTH}, L = {DEPTH}, Post-LayerNorm, tanh, widths {', '.join(map(str, SIZES))}",
        estimator="kp.simulate at each width, a fitted slope of the last layer's MLP rows",
        tolerance=Rate(step=0.45, allowance=0.15, because="the next order, d⁻², at the smallest width"),
        control="an exponent of −1/2",
        measure=measure,
        quick=False,
    ),
)
