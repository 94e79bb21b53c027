"""Value-SkipInit: attention that starts as the identity."""

import numpy as np

import kernelprop as kp
from paper_checks.check import Check, Evidence, evidence
from paper_checks.effort import Effort
from paper_checks.tolerances import Exact

LENGTH, DEPTH, WIDTH, SEED = 4, 12, 16, 3


def through_beta(kernel: np.ndarray) -> np.ndarray:
    """``‖∂X_L/∂β_l‖²_F/d`` of a numpy network ``X ← (I + β_l P) X W``, whose output is linear in one ``β_l``.

    That is the mean of ``(∂⟨R, X_L⟩/∂β_l)²/d`` over the loss ``R``.
    """
    rng = np.random.default_rng(SEED)
    weights = [np.linalg.qr(rng.normal(size=(WIDTH, WIDTH)))[0] for _ in range(DEPTH)]
    rows = np.linalg.qr(rng.normal(size=(WIDTH, LENGTH)))[0].T * np.sqrt(WIDTH)
    start, uniform = np.linalg.cholesky(kernel) @ rows, np.tril(np.ones((LENGTH, LENGTH)))
    uniform /= uniform.sum(-1, keepdims=True)

    def output(betas: np.ndarray) -> np.ndarray:
        x = start
        for beta, weight in zip(betas, weights, strict=True):
            x = (x + beta * uniform @ x) @ weight
        return x

    return np.array([np.sum((output(one) - output(0 * one)) ** 2) / WIDTH for one in np.eye(DEPTH)])


def measure(effort: Effort) -> Evidence:
    kernel = np.asarray(kp.kernels.exponential(LENGTH, 0.5))
    stack = kp.mix(kp.uniform(LENGTH, causal=True), 1.0, 0.0)
    model = kp.Transformer(stack, DEPTH)
    drawn = kp.simulate(
        model, kernel, width=WIDTH, draws=2, key=SEED, weights="orthogonal", gradients=True, dtype="float64"
    )
    assert drawn.query is not None
    norms = kp.gradient_norms(model, kernel)
    assert norms.mix_beta is not None
    uniform = kp.uniform(LENGTH, causal=True).as_matrix()
    grown = kernel
    for _ in range(DEPTH):
        grown = grown + uniform @ grown @ uniform.T
    upper = np.triu_indices(LENGTH)
    through = float(np.trace(uniform @ kernel @ uniform.T))
    betas = np.full(2 * DEPTH, through)
    right = np.concatenate([kernel[upper], [0.0], betas])
    return evidence(
        right,
        np.concatenate([grown[upper], [0.0], betas]),
        np.concatenate([drawn.kernels.mean[0][upper], [drawn.query.mean.max()], norms.mix_beta, through_beta(kernel)]),
        labels=[
            *(f"Σ_L[{i}, {j}]" for i, j in zip(*upper, strict=True)),
            "largest query gradient",
            *(f"gradient of β, layer {layer + 1}, {how}" for how in ("engine", "numpy") for layer in range(DEPTH)),
        ],
        seed=SEED,
    )


CHECKS = (
    Check(
        id="he2023.value-skipinit",
        statement="Value-SkipInit carries the kernel unchanged; at β = 0 queries receive nothing, β itself does.",
        formula="A = αI + β softmax(·), α = 1, β = 0: Σ_L = Σ_0, ∂/∂W_Q = 0, E(∂/∂β)² = d⟨G, PΣPᵀ⟩",
        source="section 4, Value-SkipInit",
        settings=f"T = {LENGTH}, L = {DEPTH}, d = {WIDTH}, uniform causal softmax inside, G_L = I",
        estimator="kp.simulate (kernel, query gradients by backpropagation); for β kp.gradient_norms at width 1 and a "
        "network in numpy",
        tolerance=Exact(operations=600),
        control="a skip around the whole sublayer, Σ + AΣAᵀ, in its place",
        measure=measure,
    ),
)
