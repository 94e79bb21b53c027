"""Rank collapse kills the gradients of queries and keys, and leaves those of values."""

import numpy as np

import kernelprop as kp
from paper_checks.check import Check, Curve, Evidence, Plot, evidence
from paper_checks.effort import Effort
from paper_checks.fits import power_law
from paper_checks.noci2022.one_layer import squared_jacobians, squared_value_jacobian
from paper_checks.tolerances import Exact, Rate

LENGTH, WIDTH, SEED = 5, 6, 29
GAPS = np.geomspace(1e-3, 1e-5, 5)


def at(gap: float) -> tuple[float, float, float]:
    """Norms of the Jacobians by queries, keys and values, of rows that differ by ``gap``; random queries and keys."""
    rng = np.random.default_rng(SEED)
    common, apart = rng.normal(size=WIDTH), rng.normal(size=(LENGTH, WIDTH))
    x = (common + gap * apart)[None]
    value, key, query = rng.normal(size=(3, 1, WIDTH, WIDTH)) / np.sqrt(WIDTH)
    by_query, by_key = squared_jacobians(x, value, key, query)
    return float(by_query[0]), float(by_key[0]), float(squared_value_jacobian(x, WIDTH)[0])


def engine(gap: float) -> float:
    """The query row of the backward recursion, for positions of correlation ``1 − δ²`` under uniform attention."""
    norms = kp.gradient_norms(kp.Transformer(kp.uniform(LENGTH)), kp.kernels.equicorrelated(LENGTH, 1 - gap**2))
    assert norms.query is not None
    return float(norms.query[0])


def rates(effort: Effort) -> Evidence:
    found = np.array([at(gap) for gap in GAPS])
    columns = [*found.T, np.array([engine(gap) for gap in GAPS])]
    slopes = [power_law(GAPS, np.sqrt(column)) for column in columns]
    curves = tuple(
        Curve(name, GAPS, np.sqrt(column), None, np.sqrt(column[0]) * (GAPS / GAPS[0]) ** rate)
        for name, column, rate in zip(("queries", "keys", "values"), found.T, (2, 2, 0), strict=True)
    )
    return evidence(
        [2.0, 2.0, 0.0, 2.0],
        [1.0, 1.0, 0.0, 1.0],
        [slope.value for slope in slopes],
        labels=["exponent of queries", "exponent of keys", "exponent of values", "exponent of queries, engine"],
        seed=SEED,
        plot=Plot(curves, "distance of the rows", "norm of the Jacobian", log_x=True, log_y=True),
    )


def limit(effort: Effort) -> Evidence:
    """All rows equal: what is left is the rounding of a centred zero."""
    by_query, by_key, by_value = at(0.0)
    mean = np.random.default_rng(SEED).normal(size=WIDTH)
    kept = WIDTH * LENGTH * np.sum(mean**2)
    return evidence(
        [0.0, 0.0, 1.0, 0.0],
        [0.1, 0.1, 1.0, 0.1],
        [by_query, by_key, by_value / kept, engine(0.0)],
        labels=["queries", "keys", "values, of d_v T ‖x‖²", "queries, kp.gradient_norms"],
        seed=SEED,
    )


CHECKS = (
    Check(
        id="noci2022.collapse-rate",
        statement="As the rows of X approach each other the gradients of queries and keys vanish quadratically, those "
        "of values don't.",
        formula="‖∂S/∂W_Q‖, ‖∂S/∂W_K‖ ∝ δ², ‖∂S/∂W_V‖ ∝ 1, δ the distance of the rows",
        source="section 3, the theorem on vanishing gradients under rank collapse",
        settings=f"T = {LENGTH}, d = d_v = d_k = {WIDTH}, random queries and keys, δ = 1e-3 to 1e-5",
        estimator="the derivative of the softmax written out in numpy, kp.gradient_norms; fitted slopes",
        tolerance=Rate(step=0.1, allowance=0.01, because="the next order in δ"),
        control="a linear law",
        measure=rates,
    ),
    Check(
        id="noci2022.collapse-limit",
        statement="With all rows equal the query and key gradients are zero.",
        formula="x_i = x: ∂S/∂W_Q = ∂S/∂W_K = 0",
        source="section 3, the theorem on vanishing gradients under rank collapse",
        settings=f"T = {LENGTH}, d = d_v = d_k = {WIDTH}, random queries and keys",
        estimator="the derivative of the softmax written out in numpy; kp.gradient_norms",
        tolerance=Exact(operations=200),
        control="a tenth is left",
        measure=limit,
    ),
)
