"""Query gradients grow as the cube of the input's scale, value gradients linearly."""

import numpy as np

import kernelprop as kp
from paper_checks.check import Check, Curve, Evidence, Plot, evidence
from paper_checks.effort import Effort
from paper_checks.fits import power_law
from paper_checks.noci2022.one_layer import correlated, squared_jacobians, squared_value_jacobian
from paper_checks.statistics import mean
from paper_checks.tolerances import Rate

LENGTH, WIDTH, SEED, CORRELATION = 4, 5, 31, 0.3
SCALES = np.geomspace(0.25, 4, 7)


def measure(effort: Effort) -> Evidence:
    """Independent draws at every scale."""
    draws = effort.draws(4000, 20_000)
    rng = np.random.default_rng(SEED)
    query, value = [], []
    for scale in SCALES:
        x = scale * correlated(rng, draws, LENGTH, WIDTH, CORRELATION)
        weights = rng.normal(size=(2, draws, WIDTH, WIDTH)) / np.sqrt(WIDTH)
        query.append(mean(squared_jacobians(x, *weights)[0]))
        value.append(mean(squared_value_jacobian(x, WIDTH)))
    slopes, curves = [], []
    for name, rows, power in (("queries", query, 3), ("values", value, 1)):
        squared, errors = np.array([row.value for row in rows]), np.array([row.stderr for row in rows])
        norms = np.sqrt(squared)
        slopes.append(power_law(SCALES, norms, errors / (2 * norms)))
        line = norms[len(SCALES) // 2] * SCALES**power
        curves.append(Curve(name, SCALES, norms, errors / (2 * norms), line))
    engine = [_engine(name) for name in ("query", "value")]
    found = [*slopes, *engine]
    return evidence(
        [3.0, 1.0, 3.0, 1.0],
        [2.5, 1.5, 2.5, 1.5],
        [slope.value for slope in found],
        [slope.stderr for slope in found],
        labels=["queries, drawn", "values, drawn", "queries, kp.gradient_norms", "values, kp.gradient_norms"],
        draws=draws,
        seed=SEED,
        plot=Plot(tuple(curves), "scale of the input", "norm of the Jacobian", log_x=True, log_y=True),
    )


def _engine(name: str):
    model, kernel = kp.Transformer(kp.uniform(LENGTH)), kp.kernels.equicorrelated(LENGTH, CORRELATION)
    norms = [getattr(kp.gradient_norms(model, scale**2 * kernel), name)[0] for scale in SCALES]
    return power_law(SCALES, np.sqrt(norms))


CHECKS = (
    Check(
        id="noci2022.cubic-and-linear-growth",
        statement="The norm of the query gradient grows as the cube of the input's scale, that of the value gradient "
        "linearly.",
        formula="‖∂S/∂W_Q‖ ∝ σ_x³, ‖∂S/∂W_V‖ ∝ σ_x",
        source="section 3, the dependence on the input's variance",
        settings=f"T = {LENGTH}, d = {WIDTH}, Gaussian X of correlation {CORRELATION}, σ_x = 0.25 to 4; the prefactors "
        "are those of noci2022.gaussian-inputs",
        estimator="the derivative of the softmax written out in numpy, fresh draws at every scale; kp.gradient_norms",
        tolerance=Rate(step=0.25),
        control="exponents off by a half",
        measure=measure,
    ),
)
