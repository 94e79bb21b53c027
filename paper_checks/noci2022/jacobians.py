"""The norms of the Jacobians with respect to values and queries, for a given input."""

import numpy as np

import kernelprop as kp
from kernelprop.predictions import noci2022
from paper_checks.check import Check, Evidence, evidence
from paper_checks.effort import Effort
from paper_checks.noci2022.one_layer import squared_jacobians, squared_value_jacobian
from paper_checks.statistics import mean
from paper_checks.tolerances import Exact, Statistical

LENGTH, WIDTH, VALUE_WIDTH, HEAD, SEED = 4, 6, 3, 5, 23


def inputs() -> np.ndarray:
    return np.random.default_rng(SEED).normal(size=(LENGTH, WIDTH))


def values(effort: Effort) -> Evidence:
    x = inputs()
    model = kp.Transformer(kp.uniform(LENGTH))
    norms = kp.gradient_norms(model, x @ x.T / WIDTH, width=WIDTH)
    assert norms.value is not None
    right = noci2022.value_jacobian(x, 1)
    return evidence(
        right,
        np.sum((x - x.mean(0)) ** 2),
        # The engine's network has an output matrix of variance 1/d, which makes d_v = d outputs of each.
        [squared_value_jacobian(x[None], VALUE_WIDTH)[0] / VALUE_WIDTH, norms.value[0] / WIDTH],
        labels=["by hand, over d_v", "kp.gradient_norms, over d"],
        seed=SEED,
    )


def queries(effort: Effort) -> Evidence:
    draws = effort.draws(20_000, 80_000)
    rng = np.random.default_rng(SEED + 1)
    x = inputs()
    value, key = rng.normal(size=(draws, WIDTH, VALUE_WIDTH)) * 1.3, rng.normal(size=(draws, WIDTH, HEAD)) * 0.7
    found = mean(squared_jacobians(np.broadcast_to(x, (draws, *x.shape)), value, key)[0])
    right = noci2022.query_jacobian(x, VALUE_WIDTH, 1.3**2, 0.7**2)
    centred = x - x.mean(0)
    wrong = VALUE_WIDTH * (1.3 * 0.7 / LENGTH) ** 2 * np.sum(centred**2) * np.sum((centred.T @ centred) ** 2)
    norms = kp.gradient_norms(kp.Transformer(kp.uniform(LENGTH)), x @ x.T / WIDTH, width=WIDTH)
    assert norms.query is not None
    engine = norms.query[0] * (VALUE_WIDTH / WIDTH) * (1.3 * 0.7 * WIDTH) ** 2
    return evidence(
        [right, right],
        [wrong, wrong],
        [found.value, engine],
        [found.stderr, 1e-9 * right],
        labels=["by hand", "kp.gradient_norms, rescaled to these variances"],
        draws=draws,
        seed=SEED,
    )


CHECKS = (
    Check(
        id="noci2022.value-jacobian",
        statement="The value gradient's norm is that of the mean position.",
        formula="‖∂S/∂W_V‖² = (d_v/T) 1ᵀXXᵀ1",
        source="section 3, the norms of the gradients of values",
        settings=f"uniform attention, one fixed X, T = {LENGTH}, d = {WIDTH}, per d_v",
        estimator="the derivative written out in numpy; kp.gradient_norms",
        tolerance=Exact(operations=200),
        control="the centred inputs in the place of their mean",
        measure=values,
    ),
    Check(
        id="noci2022.query-jacobian",
        statement="The query gradient's norm is the inputs' times that of their scatter.",
        formula="E‖∂S/∂W_Q‖² = d_v σ_v² σ_k² T⁻² ‖X‖²_F ‖XᵀCX‖²_F",
        source="section 3, the norms of the gradients of queries and keys",
        settings=f"uniform attention, one fixed X, T = {LENGTH}, d = {WIDTH}, d_v = {VALUE_WIDTH}, d_k = {HEAD}, "
        "σ_v = 1.3, σ_k = 0.7",
        estimator="the derivative of the softmax written out in numpy, W_V and W_K drawn; kp.gradient_norms",
        tolerance=Statistical(),
        quick_tolerance=Statistical(percent=10),
        control="the norm of the centred inputs in the place of ‖X‖²",
        measure=queries,
    ),
)
