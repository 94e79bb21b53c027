"""Pre-LN and Post-LN at initialisation: how fast positions become correlated, with and without depth scaling."""

import numpy as np

import kernelprop as kp
from paper_checks.check import Check, Curve, Evidence, Plot, evidence
from paper_checks.effort import Effort
from paper_checks.statistics import mean
from paper_checks.tolerances import Remainder, Statistical

LENGTH, DEPTH, SEED = 4, 12, 53
CASES = {
    "Pre-LN": ("pre", 1.0),
    "Post-LN": ("post", 1.0),
    "Pre-LN, 1/√L": ("pre", DEPTH**-0.5),
    "Post-LN, 1/√L": ("post", DEPTH**-0.5),
}
KEPT = (3, 6, 12)
CHUNK = 500
# Of the polynomial in 1/d through widths d, 2d, 4d, at 1/d = 0.
WEIGHTS = np.array([1 / 3, -2.0, 8 / 3])


def model(place: str, beta: float, depth: int = DEPTH) -> kp.Transformer:
    return kp.Transformer(
        kp.uniform(LENGTH),
        depth,
        kp.MLP("relu", 1, gain_in=np.sqrt(2)),
        kp.Residual((1, beta), (1, beta)),
        kp.Norm(place, "layer"),
    )


def cosines(place: str, beta: float, width: int, draws: int) -> np.ndarray:
    """Mean cosine ``(draws, L + 1)`` of plain numpy networks, some at a time."""
    rng = np.random.default_rng([SEED, width, int(100 * beta), place == "pre"])
    return np.concatenate([some(rng, place, beta, width, min(CHUNK, draws - k)) for k in range(0, draws, CHUNK)])


def some(rng: np.random.Generator, place: str, beta: float, width: int, draws: int) -> np.ndarray:

    def weights(deviation: float) -> np.ndarray:
        return rng.standard_normal((draws, width, width), np.float32) * np.float32(deviation / np.sqrt(width))

    def normed(x: np.ndarray) -> np.ndarray:
        x = x - x.mean(-1, keepdims=True)
        return x / np.sqrt(np.mean(x**2, -1, keepdims=True))

    x = np.linalg.qr(rng.normal(size=(width, LENGTH)))[0].T.astype(np.float32) * np.float32(np.sqrt(width))
    x = np.broadcast_to(x, (draws, LENGTH, width))
    before, after = (normed, lambda z: z) if place == "pre" else (lambda z: z, normed)
    found = [cosine(x)]
    for _ in range(DEPTH):
        mixed = before(x).mean(1, keepdims=True) @ weights(1)
        x = after(x + np.float32(beta) * mixed)
        x = after(x + np.float32(beta) * np.maximum(before(x) @ weights(np.sqrt(2)), 0) @ weights(1))
        found.append(cosine(x))
    return np.stack(found, -1)


def cosine(x: np.ndarray) -> np.ndarray:
    unit = (x / np.linalg.norm(x, axis=-1, keepdims=True)).astype(np.float64)
    return (np.sum(unit.sum(1) ** 2, -1) - LENGTH) / (LENGTH * (LENGTH - 1))


def measure(effort: Effort) -> Evidence:
    """The limit of three widths: what is left of the means after the orders ``1/d`` and ``1/d²``."""
    widths, draws = (24, 48, 96), 6000
    right, found, errors, curves = [], [], [], []
    for name, (place, beta) in CASES.items():
        found_at = [mean(cosines(place, beta, width, draws)) for width in widths]
        limit = WEIGHTS @ np.stack([one.value for one in found_at])
        stderr = np.sqrt(WEIGHTS**2 @ np.stack([one.stderr**2 for one in found_at]))
        predicted = kp.propagate(model(place, beta), kp.kernels.identity(LENGTH), "last").mean_correlation
        curves.append(Curve(name, np.arange(DEPTH + 1), limit, stderr, predicted))
        right.append(predicted[list(KEPT)])
        found.append(limit[list(KEPT)])
        errors.append(stderr[list(KEPT)])
    ends = ", ".join(f"{name} {one[-1]:.3f} ± {e[-1]:.3f}" for name, one, e in zip(CASES, found, errors, strict=True))
    right_array = np.array(right)
    return evidence(
        right_array,
        # The places of the norm swapped.
        right_array[[1, 0, 3, 2]],
        np.array(found),
        np.array(errors),
        labels=[f"{name}, depth {depth}" for name in CASES for depth in KEPT],
        draws=draws,
        seed=SEED,
        plot=Plot(tuple(curves), "depth", "mean correlation"),
        finding=f"mean correlation after {DEPTH} layers from uncorrelated inputs: {ends}",
    )


def deep(effort: Effort) -> Evidence:
    """The same at a thousand layers: what is scaled stays below 1, Post-LN without scaling does not."""
    depth = 1000
    found, logs = [], []
    for place, scaled in (("post", False), ("pre", False), ("post", True), ("pre", True)):
        beta = depth**-0.5 if scaled else 1.0
        correlations = kp.propagate(model(place, beta, depth), kp.kernels.identity(LENGTH), "last").mean_correlation
        found.append(correlations[-1])
        logs.append(f"{'scaled' if scaled else 'unscaled'} {place} {correlations[-1]:.4f}")
    scaled = [ode(place) for place in ("post", "pre")]
    return evidence(
        [1.0, *scaled],
        [found[1], *scaled[::-1]],
        [found[0], *found[2:]],
        labels=["Post-LN, unscaled", "Post-LN, scaled", "Pre-LN, scaled"],
        finding=f"at L = {depth}: {', '.join(logs)}",
    )


def ode(place: str, steps: int = 4000) -> float:
    """The limit of infinite depth as a differential equation in ``t = l/L``, by the midpoint rule.

    Of uncorrelated positions only the diagonal ``q`` and the pairs' ``p`` move: in ``dt`` a branch adds what it makes
    of ``c = p/q``. Pre-norms: ``q' = a(c) + 1``, ``p' = a(c) + K(c)``, ``a = (1+(T−1)c)/T``. Post-norms keep ``q = 1``.
    """

    def slopes(state: np.ndarray) -> np.ndarray:
        q, p = state
        c = min(p / q, 1.0)
        common = (1 + (LENGTH - 1) * c) / LENGTH
        relu = (np.sqrt(1 - c * c) + c * (np.pi - np.arccos(c))) / np.pi
        grown = np.array([common + 1.0, common + relu])
        return grown if place == "pre" else grown - np.array([1.0, c]) * grown[0]

    state = np.array([1.0, 0.0])
    for _ in range(steps):
        middle = state + slopes(state) / (2 * steps)
        state = state + slopes(middle) / steps
    return float(state[1] / state[0])


CHECKS = (
    Check(
        id="noci2022.norms-against-depth",
        statement="Positions become correlated faster under Post-LN than under Pre-LN; scaling branches by 1/√L slows "
        "both.",
        formula="Σ ← Σ + β² branch(N Σ) (Pre-LN), Σ ← N(Σ + β² branch Σ) (Post-LN)",
        source="section 3 and the figures of correlation against depth",
        settings=f"T = {LENGTH}, L = {DEPTH}, uniform attention, ReLU MLPs (σ₁² = 2), LayerNorm, Σ_0 = I",
        estimator="plain numpy networks of widths 24, 48 and 96, extrapolated by 1/d and 1/d², against kp.propagate",
        tolerance=Statistical(percent=9, step=0.03),
        control="Pre-LN and Post-LN swapped",
        measure=measure,
        quick=False,
    ),
    Check(
        id="noci2022.norms-depth-limit",
        statement="Unscaled Post-LN collapses; with 1/√L both placements tend to a correlation below 1.",
        formula="c_L → 1 (Post-LN); scaled: q' = a + 1, p' = a + K(c), a = (1+(T−1)c)/T, c = p/q (Post-LN: less c q')",
        source="section 3, depth scaling with norms",
        settings=f"T = {LENGTH}, L = 1000, uniform attention, ReLU MLPs (σ₁² = 2), LayerNorm, Σ_0 = I",
        estimator="kp.propagate against the differential equation of the limit, in numpy",
        tolerance=Remainder(0.01, "the remainder O(1/L), and 1 − c ∝ L⁻² of ReLUs"),
        control="the unscaled Pre-LN, and both placements swapped",
        measure=deep,
    ),
)
