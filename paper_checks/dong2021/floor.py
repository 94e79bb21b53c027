"""Pure softmax attention reaches the floor of float64 within a few layers; what is read off below it is rounding."""

import numpy as np

import kernelprop as kp
from paper_checks.check import Check, Curve, Evidence, Plot, evidence
from paper_checks.effort import Effort
from paper_checks.tolerances import Exact

LENGTH, DEPTH, WIDTH, HEADS, SEED = 16, 8, 64, 4, 73
DEVIATIONS = (0.1, 1.0, 2.0)
# Predictions below this are left out of the plot.
SHOWN = 1e-40


def measure(effort: Effort) -> Evidence:
    kernel = kp.kernels.identity(LENGTH)
    floor = 16 * np.finfo(np.float64).eps
    right, wrong, found, flagged, curves = [], [], [], [], []
    for s in DEVIATIONS:
        engine = kp.propagate(
            kp.Transformer(kp.random_softmax(LENGTH, tau=s, draws=64, chains=16, seed=SEED), DEPTH), kernel, "last"
        ).rank_residual
        drawn = kp.simulate(
            kp.Transformer(kp.random_softmax(LENGTH, tau=s), DEPTH),
            kernel,
            width=WIDTH,
            draws=16,
            key=SEED,
            heads=HEADS,
            dtype="float64",
            samples=True,
        )
        typical = drawn.quantiles("rank_residual", (0.5,))[0]
        right.append(int(np.argmax(engine < floor)))
        found.append(int(np.argmax(typical < floor)))
        # One exponential with the ratio of the second layer.
        wrong.append(1 + int(np.ceil(np.log(floor / engine[1]) / np.log(engine[2] / engine[1]))))
        flagged.append(bool(drawn.below_floor[-1]))
        curves.append(Curve(f"s = {s:g}", np.arange(DEPTH + 1), typical, None, np.where(engine > SHOWN, engine, 0)))
    shown = ", ".join(f"{n} layers at s = {s:g}" for n, s in zip(found, DEVIATIONS, strict=True))
    return evidence(
        [*right, *np.ones(len(DEVIATIONS))],
        [*wrong, *np.ones(len(DEVIATIONS))],
        [*found, *flagged],
        labels=[
            *(f"first layer below the floor, s = {s:g}" for s in DEVIATIONS),
            *(f"flagged at the end, s = {s:g}" for s in DEVIATIONS),
        ],
        seed=SEED,
        plot=Plot(tuple(curves), "depth", "relative residual", log_y=True),
        finding=f"float64 is left after {shown} (T = {LENGTH}); from there on a network shows rounding at 1e-16, "
        "which the ensemble flags, while the kernel engine goes on",
    )


CHECKS = (
    Check(
        id="dong2021.float64-floor",
        statement="Pure softmax attention falls below what float64 can tell in three to five layers, and is flagged.",
        formula="first l with ε_l < 16 eps",
        source="section 2, with the floating-point floor that plots of the decay run into",
        settings=f"T = {LENGTH}, Σ_0 = I, logits of deviation s = 0.1, 1, 2: predictions decades away from "
        "the floor on both sides",
        estimator=f"kp.simulate, {HEADS} heads, d = {WIDTH}, median of 16 networks, float64; predicted by kp.propagate",
        tolerance=Exact(),
        control="a single exponential with the ratio of the second layer",
        measure=measure,
    ),
)
