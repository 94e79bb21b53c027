"""The temperature that balances the gradients of queries and values, and what 8.5 corresponds to."""

from typing import Any

import numpy as np
from scipy.optimize import brentq

import kernelprop as kp
from kernelprop.balance import balance_temperature
from kernelprop.predictions import noci2022
from paper_checks.check import Check, Evidence, evidence
from paper_checks.effort import Effort
from paper_checks.noci2022.one_layer import correlated, squared_jacobians, squared_value_jacobian
from paper_checks.statistics import ratio
from paper_checks.tolerances import Exact, Statistical

LENGTH, WIDTH, SEED = 6, 16, 47
STATED = 8.5


def balance(length: int, width: int, correlation: float) -> float:
    """``τ`` with ``τ²E‖∂S/∂W_Q‖² = E‖∂S/∂W_V‖²`` of Gaussian inputs, weights of variance ``1/d``."""
    value = noci2022.expected_value_jacobian(length, width, width, correlation)
    query = noci2022.expected_query_jacobian(length, width, width, correlation, 1, 1 / width, 1 / width)
    return float(np.sqrt(value / query))


def correlation_of(temperature: float, length: int, width: int) -> float:
    """The correlation between positions at which a temperature balances."""
    root: Any = brentq(lambda rho: balance(length, width, rho) - temperature, 0.0, 1 - 1e-9)
    return float(root)


def drawn(effort: Effort) -> Evidence:
    """The ratio of query to value norms at the stated temperature and its correlation, and at two others."""
    draws = effort.draws(12_000, 60_000)
    rhos = (0.0, 0.5, correlation_of(STATED, LENGTH, WIDTH))
    rng = np.random.default_rng(SEED)
    found = []
    for rho in rhos:
        x = correlated(rng, draws, LENGTH, WIDTH, rho)
        weights = rng.normal(size=(2, draws, WIDTH, WIDTH)) / np.sqrt(WIDTH)
        query = balance(LENGTH, WIDTH, rho) ** 2 * squared_jacobians(x, *weights)[0]
        found.append(ratio(query, squared_value_jacobian(x, WIDTH)))
    settings = ((32, 512), (128, 512), (256, 512))
    shown = [f"{correlation_of(STATED, t, d):.3f} at T = {t}, d = {d}" for t, d in settings]
    plain = [f"{balance(t, d, 0.0):.2f} at T = {t}, d = {d}" for t, d in settings]
    return evidence(
        1.0,
        (8.0 / STATED) ** 2,
        [one.value for one in found],
        [one.stderr for one in found],
        labels=[f"query over value norm, ρ = {rho:.4f}, τ = {balance(LENGTH, WIDTH, rho):.3f}" for rho in rhos],
        draws=draws,
        seed=SEED,
        finding=(
            f"there is no universal temperature: uncorrelated inputs balance at {', '.join(plain)}; {STATED} balances "
            f"inputs whose positions have correlation {', '.join(shown)} (one layer, W_Q = 0, variances 1/d)"
        ),
    )


def grows_linearly(effort: Effort) -> Evidence:
    """The engine's balance of a whole network: norms at that temperature agree."""
    kernel = kp.kernels.equicorrelated(LENGTH, 0.5)
    settings = {"depth": 3, "mlp": kp.MLP("relu"), "residual": kp.Residual((1.0, 0.5), (1.0, 0.5))}
    attention = kp.uniform(LENGTH, causal=True)
    found = balance_temperature(kp.Transformer(attention, **settings), kernel)

    def share(temperature: float) -> float:
        norms = kp.gradient_norms(
            kp.Transformer(attention, gains=kp.Gains(temperature=temperature), **settings), kernel
        )
        assert norms.query is not None
        assert norms.value is not None
        return float(norms.query.sum() / norms.value.sum())

    return evidence(
        [1.0, 4.0],
        [1.0, 2.0],
        [share(found.temperature), share(2 * found.temperature)],
        labels=["query over value norms, balanced", "at twice the temperature"],
        finding=f"that network balances at τ = {found.temperature:.3f}",
    )


CHECKS = (
    Check(
        id="noci2022.temperature",
        statement="A temperature balances query and value gradients; which one depends on the inputs' correlation, and "
        "8.5 stands for one of them.",
        formula="τ² = E‖∂S/∂W_V‖² / E‖∂S/∂W_Q‖² = d²T²(1+(T−1)ρ) / ((T−1)(T+d)(1−ρ)²(Td+4(1−ρ)))",
        source="section 3 and the experiments, τ = 8.5; corrects the reading that one value fits all",
        settings=f"T = {LENGTH}, d = d_v = d_k = {WIDTH}, W_Q = 0, ρ = 0, 0.5 and that of τ = 8.5",
        estimator="the derivative of the softmax written out in numpy, inputs and weights drawn",
        tolerance=Statistical(),
        quick_tolerance=Statistical(percent=10),
        control="the balance of τ = 8 at the correlation of 8.5",
        measure=drawn,
    ),
    Check(
        id="noci2022.temperature-whole-network",
        statement="In a whole network too one temperature balances the sums over layers; squared norms grow as τ².",
        formula="Σ_l E‖∂loss/∂W_Q‖² = Σ_l E‖∂loss/∂W_V‖², ∝ τ²",
        source="section 3",
        settings=f"T = {LENGTH}, L = 3, causal uniform attention, ReLU MLPs, β = 0.5, ρ_0 = 0.5",
        estimator="kp.balance_temperature, then kp.gradient_norms at that temperature and at twice it",
        tolerance=Exact(operations=400),
        control="a linear growth of squared norms",
        measure=grows_linearly,
        quick=False,
    ),
)
