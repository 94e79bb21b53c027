"""Layer after layer: the logarithm of the residual triples, so that the residual falls doubly exponentially."""

import numpy as np

import kernelprop as kp
from paper_checks.check import Check, Curve, Evidence, Plot, evidence
from paper_checks.effort import Effort
from paper_checks.tolerances import Rate

LENGTH, DEPTH, SEED, START = 8, 3, 67, 0.05


def measure(effort: Effort) -> Evidence:
    attention = kp.random_softmax(LENGTH, draws=effort.draws(256, 1024), chains=8, seed=SEED)
    model = kp.Transformer(attention, DEPTH)
    evolution = kp.propagate(model, kp.kernels.equicorrelated(LENGTH, 1 - START), "last")
    residual = evolution.rank_residual
    gap = residual**2 * LENGTH / (LENGTH - 1)
    # δ' = k²δ³, k² = (T−1)/T², is (kδ') = (kδ)³.
    logs = np.log(np.sqrt(LENGTH - 1) / LENGTH * gap)
    depths = np.arange(DEPTH + 1)
    scale = np.sqrt(LENGTH - 1) / LENGTH
    line = np.sqrt(np.exp(logs[0] * 3.0**depths) / scale * (LENGTH - 1) / LENGTH)
    single = residual[0] * (residual[1] / residual[0]) ** depths
    return evidence(
        3.0,
        2.5,
        logs[1:] / logs[:-1],
        labels=[f"layer {layer}" for layer in depths[1:]],
        seed=SEED,
        plot=Plot(
            (Curve("infinitely many heads (control: one exponential)", depths, residual, None, line, single),),
            "depth",
            "relative residual",
            log_y=True,
        ),
        finding=f"from {residual[0]:.2g} the relative residual falls to "
        f"{', '.join(f'{value:.1e}' for value in residual[1:])}",
    )


CHECKS = (
    Check(
        id="dong2021.double-exponential",
        statement="The logarithm of the residual triples from layer to layer: doubly exponential decay.",
        formula="log(kδ_{l+1}) = 3 log(kδ_l), k = s√(T−1)/T",
        source="section 2, the main theorem's 3^L",
        settings=f"T = {LENGTH}, s = 1, equal correlations, 1 − c = {START}, {DEPTH} layers",
        estimator="kp.propagate, which carries the centred kernel apart and stays right below rounding",
        tolerance=Rate(step=0.25, allowance=0.1, because="the next order in δ and the finite number of heads drawn"),
        control="a factor of 2.5",
        measure=measure,
    ),
)
