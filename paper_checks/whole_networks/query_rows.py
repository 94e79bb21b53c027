"""The query row: exact under linear layers, corrected under norms and MLPs, and what the uncorrected row misses."""

from functools import partial

import numpy as np

import kernelprop as kp
from paper_checks.check import Check, Curve, Evidence, Plot, evidence
from paper_checks.effort import Effort
from paper_checks.tolerances import Statistical
from paper_checks.whole_networks import widths
from paper_checks.whole_networks.networks import KERNEL as CORRELATED
from paper_checks.whole_networks.networks import LENGTH, matrices

SEED = 307
# Each position attends to itself and a little to the next: its values then point along what the layers above act on.
PEAKED = 0.9 * np.eye(LENGTH) + 0.1 * np.roll(np.eye(LENGTH), 1, axis=1)
APART = kp.kernels.identity(LENGTH)


def linear(effort: Effort) -> Evidence:
    residual = kp.Residual((0.8, 0.6), (0.8, 0.6))
    model, wrong = (
        kp.Transformer(kp.dense(matrices()), mlp=kp.MLP("linear", 1), residual=residual, gains=kp.Gains(key=gain))
        for gain in (1.0, 1.1)
    )
    draws = 40_000
    found = widths.measured(model, CORRELATED, ("query",), (24, 48, 96), draws, SEED)
    norms, control = (kp.gradient_norms(one, CORRELATED) for one in (model, wrong))
    assert norms.query is not None
    assert control.query is not None
    assert norms.query_exact.all()
    return _evidence(found, norms.query, control.query, draws, "")


def directly_above(name: str, effort: Effort) -> Evidence:
    """One layer under the loss: the corrected row against the one of first order."""
    return corrected(SINGLE[name], 1, (16, 32, 64), 40_000)


def deep(name: str, effort: Effort) -> Evidence:
    return corrected(DEEP[name], 3, (24, 48, 96), 30_000)


def corrected(parts: dict, depth: int, sizes: tuple[int, ...], draws: int) -> Evidence:
    model = kp.Transformer(kp.dense(PEAKED if depth == 1 else np.stack([PEAKED] * depth)), **parts)
    found = widths.measured(model, APART, ("query",), sizes, draws, SEED)
    first, exact = (kp.gradient_norms(model, APART, query_method=m).query for m in ("first_order", "exact"))
    assert first is not None
    assert exact is not None
    ratio, error = found.law.limit.mean / first, found.law.limit.stderr / first
    pairs = enumerate(zip(ratio, error, strict=True), 1)
    shown = ", ".join(f"{value:.3f} ± {own:.3f} (layer {layer})" for layer, (value, own) in pairs)
    return _evidence(found, exact, first, draws, f"measured over the uncorrected row: {shown}")


def _evidence(found: widths.Rows, right: np.ndarray, wrong: np.ndarray, draws: int, finding: str) -> Evidence:
    curves = tuple(
        Curve(
            f"layer {layer + 1}",
            found.widths,
            found.mean[:, layer] / right[layer],
            found.stderr[:, layer] / right[layer],
            np.ones(len(found.widths)),
            np.full(len(found.widths), wrong[layer] / right[layer]),
        )
        for layer in range(len(right))
    )
    return evidence(
        right,
        wrong,
        found.law.limit.mean,
        found.law.limit.stderr,
        labels=[f"limit of query, layer {layer + 1}" for layer in range(len(right))],
        draws=draws,
        seed=SEED,
        plot=Plot(curves, "width d", "measured / predicted", log_x=True),
        finding=finding,
    )


SINGLE = {
    "norm": {"norm": kp.Norm("post", "rms")},
    "norm-and-skip": {"norm": kp.Norm("post", "rms"), "residual": kp.Residual((0.6, 0.8))},
    "tanh": {"mlp": kp.MLP("tanh", 1, gain_in=2.0)},
    "relu": {"mlp": kp.MLP("relu", 1)},
}
DEEP = {
    "post-rms": {"norm": kp.Norm("post", "rms")},
    "pre-rms-tanh": {
        "norm": kp.Norm("pre", "rms", final=True),
        "mlp": kp.MLP("tanh", 1, gain_in=2.0),
        "residual": kp.Residual((0.6, 0.8), (0.6, 0.8)),
    },
}
WORDS = {
    "norm": "RMSNorm, no skip",
    "norm-and-skip": "RMSNorm, skip 0.6, branch 0.8",
    "tanh": "a tanh MLP",
    "post-rms": "Post-RMSNorm without skips",
    "pre-rms-tanh": "Pre-RMSNorm, tanh MLPs, skips",
}


def relu(effort: Effort) -> Evidence:
    """A ReLU above: by symmetry the first order is exact."""
    model = kp.Transformer(kp.dense(PEAKED), **SINGLE["relu"])
    draws = 40_000
    found = widths.measured(model, APART, ("query",), (16, 32, 64), draws, SEED)
    norms = kp.gradient_norms(model, APART)
    like_tanh = kp.gradient_norms(kp.Transformer(kp.dense(PEAKED), norm=kp.Norm("post", "rms")), APART)
    exact = kp.gradient_norms(
        kp.Transformer(kp.dense(PEAKED), norm=kp.Norm("post", "rms")), APART, query_method="exact"
    )
    assert norms.query is not None
    assert like_tanh.query is not None
    assert exact.query is not None
    return _evidence(found, norms.query, norms.query * exact.query / like_tanh.query, draws, "")


def _corrected(name: str, measure, depth: int, sizes: str, percent: float) -> Check:
    return Check(
        id=f"whole_networks.query-{'under' if depth == 1 else 'deep'}-{name}",
        statement=f"The corrected query row under {WORDS[name]}, {'directly above' if depth == 1 else 'three layers'}; "
        "the uncorrected one is off.",
        formula="Γ_{ij,i'j'} in the place of G_ii' Σ_jj': what the layers above feel of the values that a query moves",
        source="this toolkit's backward recursion; corrects the first-order row",
        settings=f"T = {LENGTH}, L = {depth}, A = 0.9 I + 0.1 shift, Σ_0 = I, widths {sizes}",
        estimator="kp.simulate at each width, the limit of measured = limit + slope/d, against query_method='exact'",
        tolerance=Statistical(percent=percent),
        control="the uncorrected row",
        measure=measure,
        quick=False,
    )


CHECKS = (
    Check(
        id="whole_networks.query-linear",
        statement="The query row is exact in stacks whose layers are linear.",
        formula="W_Q: d² Σ_ii' Σ_ii' β₁²G_ii' D_i D_i' t_ii'",
        source="this toolkit's backward recursion",
        settings=f"T = {LENGTH}, L = 2, linear MLPs, α = 0.8, β = 0.6, peaked softmax matrices, widths 24, 48, 96",
        estimator="kp.simulate at each width, the limit of measured = limit + slope/d",
        tolerance=Statistical(percent=6),
        control="keys of a tenth more deviation",
        measure=linear,
        quick=False,
    ),
    *(
        _corrected(name, partial(directly_above, name), 1, "16, 32, 64", 5.0)
        for name in ("norm", "norm-and-skip", "tanh")
    ),
    Check(
        id="whole_networks.query-under-relu",
        statement="Under a ReLU directly above the uncorrected query row is exact.",
        formula="Γ = G_ii' Σ_jj' for ReLUs and G_L = I, by the symmetry of φ'² + φ'(−·)²",
        source="this toolkit's backward recursion",
        settings=f"T = {LENGTH}, L = 1, A = 0.9 I + 0.1 shift, Σ_0 = I, widths 16, 32, 64",
        estimator="kp.simulate at each width, the limit of measured = limit + slope/d",
        tolerance=Statistical(),
        control="the correction of a norm",
        measure=relu,
        quick=False,
    ),
    *(_corrected(name, partial(deep, name), 3, "24, 48, 96", 10.0) for name in DEEP),
)
