"""Signal-preserving attention as a softmax layer with a causal mask: ``A = D softmax(B + mask)``."""

import numpy as np

import kernelprop as kp
from paper_checks.check import Check, Evidence, evidence
from paper_checks.effort import Effort
from paper_checks.tolerances import Exact

LENGTH, DEPTH = 6, 3


def rebuilt(stack, axis: int) -> np.ndarray:
    """Softmax in numpy of the biases and the mask; ``axis=0`` multiplies columns by ``D``, which is the control."""
    form = stack.softmax_form()
    logits = np.where(form.mask, form.bias, -np.inf)
    weights = np.exp(logits - logits.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    return weights * (form.rescale[:, None, :] if axis == 0 else form.rescale[:, :, None])


def measure(effort: Effort) -> Evidence:
    stacks = {"E-SPA": kp.espa(LENGTH, DEPTH, gamma=0.05), "U-SPA": kp.uspa(LENGTH, DEPTH, rho=0.8)}
    parts = [(stack.as_matrix(), rebuilt(stack, 0), rebuilt(stack, 1)) for stack in stacks.values()]
    right, wrong, found = (np.stack(values) for values in zip(*parts, strict=True))
    names = [f"{name} A_{layer + 1}[{i}, {j}]" for name in stacks for layer, i, j in np.ndindex(DEPTH, LENGTH, LENGTH)]
    return evidence(right, wrong, found, labels=names)


def masked(effort: Effort) -> Evidence:
    """What a finite network with this attention does: the last position never reaches the others."""
    stack = kp.espa(LENGTH, DEPTH, gamma=0.05)
    model = kp.Transformer(stack)
    rng = np.random.default_rng(2)
    inputs = rng.normal(size=(LENGTH, 16))
    moved = inputs.copy()
    moved[-1] += 1.0
    runs = [
        kp.simulate(model, inputs=x, width=16, draws=2, key=3, weights="orthogonal", dtype="float64").kernels.mean[0]
        for x in (inputs, moved)
    ]
    change = runs[1] - runs[0]
    own = kp.propagate(model, np.stack([x @ x.T / 16 for x in (inputs, moved)]), keep="last").kernels[:, 0]
    predicted = own[1] - own[0]
    return evidence(
        np.append(np.zeros((LENGTH - 1, LENGTH - 1)), predicted[-1]),
        np.append(np.full((LENGTH - 1, LENGTH - 1), 0.1), predicted[-1]),
        np.append(change[:-1, :-1], change[-1]),
        labels=[
            *(f"change of Σ_L[{i}, {j}]" for i, j in np.ndindex(LENGTH - 1, LENGTH - 1)),
            *(f"change of Σ_L[{LENGTH - 1}, {j}]" for j in range(LENGTH)),
        ],
        seed=3,
    )


CHECKS = (
    Check(
        id="he2023.softmax-form",
        statement="Row sums and the logarithm of the rest realise the attention by a softmax with a causal mask.",
        formula="A = D softmax(B + mask), D = A1, B = log(D⁻¹A), W_Q = 0",
        source="section 4, the realisation of A by biases and rescaling",
        settings=f"T = {LENGTH}, L = {DEPTH}, γ_L = 0.05 and ρ_L = 0.8",
        estimator="a softmax in numpy of op.softmax_form()",
        tolerance=Exact(),
        control="D multiplies columns (the wrong axis)",
        measure=measure,
    ),
    Check(
        id="he2023.causal-mask",
        statement="The realised attention is causal: moving the last position changes no kernel of those before it.",
        formula="∂Σ_L,ij / ∂x_{T−1} = 0 for i, j < T − 1",
        source="section 4, causal masking",
        settings=f"T = {LENGTH}, L = {DEPTH}, d = 16, every entry of the last position moved by 1",
        estimator="kp.simulate with the same orthogonal weights for both inputs, float64",
        tolerance=Exact(operations=400),
        control="every such entry moves by 0.1",
        measure=masked,
    ),
)
