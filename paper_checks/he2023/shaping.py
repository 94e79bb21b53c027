"""The conditions that DKS and TAT solve for, by quadrature that the solver does not use."""

import numpy as np

import kernelprop as kp
from paper_checks.check import Check, Evidence, evidence
from paper_checks.effort import Effort
from paper_checks.tolerances import Remainder

DEPTH, ZETA, TAU, ETA = 36, 1.5, 0.3, 0.9
# Of the differences: the ninth derivative of what is this smooth times STEP⁸ is rounding.
STEP = 0.02


def base(name: str, x: np.ndarray) -> np.ndarray:
    """The unshaped functions in numpy."""
    from scipy.special import erf

    functions = {
        "gelu": lambda z: z * 0.5 * (1 + erf(z / np.sqrt(2))),
        "tanh": np.tanh,
        "softplus": lambda z: np.logaddexp(0, z),
        "swish": lambda z: z / (1 + np.exp(-z)),
        "relu": lambda z: np.maximum(z, 0),
        "sigmoid": lambda z: 1 / (1 + np.exp(-z)),
    }
    return functions[name](x)


def shaped(name: str, parameters) -> tuple[np.ndarray, np.ndarray, list[np.ndarray]]:
    """Gauss-Hermite nodes and weights, and ``φ̂, φ̂', φ̂''`` there; derivatives by differences of eighth order."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(120)
    p, offsets = parameters, STEP * np.arange(-4, 5)
    inside = p["input_scale"] * (nodes + offsets[:, None]) + p["input_shift"]
    values = p["output_scale"] * (base(name, inside) + p["output_shift"])
    powers = offsets[None, :] ** np.arange(9)[:, None]
    rules = np.linalg.inv(powers)
    return nodes, weights / weights.sum(), [values[4], rules[:, 1] @ values, 2 * rules[:, 2] @ values]


def dks(effort: Effort) -> Evidence:
    names = ("gelu", "tanh", "softplus")
    rows = []
    for name in names:
        x, w, (value, slope, _) = shaped(name, kp.dks(name, depth=DEPTH, zeta=ZETA).parameters)
        rows.append([w @ value, w @ value**2, w @ (x * value * slope), w @ slope**2])
    right = [0.0, 1.0, 1.0, ZETA ** (1 / DEPTH)]
    return evidence(
        right,
        [0.0, 1.0, 1.0, ZETA ** (2 / DEPTH)],
        rows,
        labels=[f"{name}: {what}" for name in names for what in ("E φ", "E φ²", "E xφφ'", "E φ'²")],
    )


def tat(effort: Effort) -> Evidence:
    names = ("gelu", "tanh", "softplus")
    rows = []
    for name in names:
        x, w, (value, slope, curved) = shaped(name, kp.tat(name, depth=DEPTH, tau=TAU).parameters)
        rows.append([w @ value**2, w @ (x * value * slope), w @ slope**2, DEPTH * (w @ curved**2)])
    return evidence(
        [1.0, 1.0, 1.0, TAU],
        [1.0, 1.0, 1.0, TAU * (DEPTH + 1) / DEPTH],
        rows,
        labels=[f"{name}: {what}" for name in names for what in ("E φ²", "E xφφ'", "E φ'²", "L E φ''²")],
    )


def tat_leaky(effort: Effort) -> Evidence:
    """The arc-cosine map of the leaky ReLU in numpy, composed."""
    depths = (14, DEPTH, 100)
    found = [composed(kp.tat("leaky_relu", depth=n, eta=ETA).parameters["negative_slope"], n) for n in depths]
    fewer = [composed(kp.tat("leaky_relu", depth=n, eta=ETA).parameters["negative_slope"], n // 2) for n in depths]
    return evidence(ETA, np.array(fewer).max(), found, labels=[f"C_f(0), L = {n}" for n in depths])


def composed(slope: float, depth: int, c: float = 0.0) -> float:
    """``C(c) = c + (1−s)²/(π(1+s²)) (√(1−c²) − c arccos c)``, ``depth`` times."""
    for _ in range(depth):
        c += (1 - slope) ** 2 / (np.pi * (1 + slope**2)) * (np.sqrt(1 - c * c) - c * np.arccos(c))
    return float(c)


CHECKS = (
    Check(
        id="he2023.dks-conditions",
        statement="DKS activations meet the four conditions of deep kernel shaping.",
        formula="E φ = 0, E φ² = 1, Q'(1) = E xφφ' = 1, C'(1) = E φ'² = ζ^{1/L}",
        source="section 3, after Martens et al. 2021",
        settings=f"L = {DEPTH}, ζ = {ZETA}; gelu, tanh, softplus",
        estimator="Gauss-Hermite quadrature with 120 nodes in numpy, derivatives by differences",
        tolerance=Remainder(2e-7, "the differences of eighth order"),
        control="ζ^{2/L}: two nonlinear layers a block are counted as one",
        measure=dks,
    ),
    Check(
        id="he2023.tat-conditions",
        statement="TAT activations of smooth functions meet their four conditions.",
        formula="Q(1) = E φ² = 1, Q'(1) = E xφφ' = 1, C'(1) = E φ'² = 1, C''(1) = E φ''² = τ/L",
        source="section 3, after Zhang et al. 2022",
        settings=f"L = {DEPTH}, τ = {TAU}; gelu, tanh, softplus",
        estimator="Gauss-Hermite quadrature with 120 nodes in numpy, derivatives by differences",
        tolerance=Remainder(1e-6, "the differences of eighth order"),
        control="one layer more is counted",
        measure=tat,
    ),
    Check(
        id="he2023.tat-leaky-relu",
        statement="The leaky ReLU of TAT takes correlation 0 to η over the whole depth.",
        formula="C ∘ ⋯ ∘ C(0) = η, L times",
        source="section 3, after Zhang et al. 2022",
        settings=f"η = {ETA}; L = 14, {DEPTH}, 100",
        estimator="the arc-cosine map in numpy, composed L times",
        tolerance=Remainder(1e-10, "the solver's root"),
        control="half as many layers are counted",
        measure=tat_leaky,
    ),
)
