"""Random queries and keys: what the loss feels of the positions through the scores."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

import kernelprop as kp
from paper_checks.check import Check, Curve, Evidence, Plot, evidence
from paper_checks.effort import Effort
from paper_checks.statistics import ratio
from paper_checks.tolerances import Statistical

LENGTH, DEPTH, SEED = 4, 4, 401
ALPHA, BETA = 0.8, 0.6
# Width, and the heads, which are as wide as they are many: all that is finite grows together.
SIZES = ((24, 6), (48, 12))


def network(x: jax.Array, weights: dict[str, jax.Array], deviation: float) -> jax.Array:
    """Four Pre-RMSNorm attention layers; ``weights`` are ``(L, H, d, d_k)``, those of the output ``(L, H, d_k, d)``."""
    for layer in range(DEPTH):
        inside = x / jnp.sqrt(jnp.mean(x**2, -1, keepdims=True))
        query, key, value = (jnp.einsum("td,hdk->htk", inside, weights[name][layer]) for name in ("q", "k", "v"))
        logits = deviation * jnp.einsum("htk,hsk->hts", query, key) / jnp.sqrt(jnp.float32(query.shape[-1]))
        mixed = jnp.einsum("hts,hsk,hkd->td", jax.nn.softmax(logits, -1), value, weights["o"][layer])
        x = ALPHA * x + BETA * mixed
    return x


def one_draw(key: jax.Array, deviation: float, width: int, heads: int) -> tuple[jax.Array, jax.Array]:
    """``‖∂⟨R, X_L⟩/∂X_0‖²/d`` at this deviation and at none, with the same weights, input and loss."""
    keys = jax.random.split(key, 6)
    shape = (DEPTH, heads, width, heads)
    weights = {name: jax.random.normal(k, shape) / np.sqrt(width) for name, k in zip("qkv", keys[:3], strict=True)}
    weights["o"] = jax.random.normal(keys[3], (DEPTH, heads, heads, width)) / heads
    x = jnp.linalg.qr(jax.random.normal(keys[4], (width, LENGTH)))[0].T * np.sqrt(width)
    loss = jax.random.normal(keys[5], (LENGTH, width))

    def squared(s: float) -> jax.Array:
        return jnp.sum(jax.grad(lambda y: jnp.sum(loss * network(y, weights, s)))(x) ** 2) / width

    return squared(deviation), squared(0.0)


@partial(jax.jit, static_argnums=(2, 3))
def chunk(keys: jax.Array, deviation: float, width: int, heads: int) -> tuple[jax.Array, jax.Array]:
    return jax.vmap(lambda key: one_draw(key, deviation, width, heads))(keys)


def drawn(deviation: float, width: int, heads: int, draws: int) -> tuple[np.ndarray, np.ndarray]:
    keys = jax.random.split(jax.random.key(SEED + width), draws).reshape(-1, 250)
    parts = [chunk(some, deviation, width, heads) for some in keys]
    scored, plain = (np.concatenate([np.asarray(part[k], np.float64) for part in parts]) for k in range(2))
    return scored, plain


def model(deviation: float) -> kp.Transformer:
    attention = kp.random_softmax(LENGTH, tau=deviation, draws=512, chains=8, seed=SEED)
    return kp.Transformer(attention, DEPTH, residual=kp.Residual((ALPHA, BETA)), norm=kp.Norm("pre", "rms"))


def without(deviation: float) -> float:
    """``tr G_0`` with attention matrices of these logits but no way back through them."""
    rng = np.random.default_rng(SEED)
    cotangent = np.eye(LENGTH)
    for kernel in kp.propagate(model(deviation), kp.kernels.identity(LENGTH)).kernels[-2::-1]:
        q = np.sqrt(np.diagonal(kernel))
        values, vectors = np.linalg.eigh(kernel / np.outer(q, q))
        factor = vectors * np.sqrt(np.maximum(values, 0))
        weights = np.exp(deviation * factor @ rng.normal(size=(20_000, LENGTH, LENGTH)) @ factor.T)
        weights /= weights.sum(-1, keepdims=True)
        pulled = np.mean(np.swapaxes(weights, 1, 2) @ cotangent @ weights, 0)
        cotangent = ALPHA**2 * cotangent + BETA**2 * pulled / np.outer(q, q)
    return float(np.trace(cotangent))


def measure(deviation: float, draws: int, effort: Effort) -> Evidence:
    """The ratio to the network without scores, whose limit is known: paired draws leave it little noise."""
    found = [ratio(*drawn(deviation, width, heads, draws)) for width, heads in SIZES]
    limit = 2 * found[1].value - found[0].value
    error = float(np.hypot(2 * found[1].stderr, found[0].stderr))
    kernel = kp.kernels.identity(LENGTH)
    norms = kp.gradient_norms(model(deviation), kernel)
    uniform = kp.gradient_norms(
        kp.Transformer(kp.uniform(LENGTH), DEPTH, residual=kp.Residual((ALPHA, BETA)), norm=kp.Norm("pre", "rms")),
        kernel,
    )
    assert norms.input is not None
    assert uniform.input is not None
    assert norms.stderr is not None
    base = float(uniform.input)
    right, wrong = float(norms.input) / base, without(deviation) / base
    own = float(norms.stderr["input"]) / base
    sizes = np.array([width for width, _ in SIZES], np.float64)
    values = np.array([one.value for one in found])
    return evidence(
        [right],
        [wrong],
        [limit],
        [np.hypot(error, own)],
        labels="input cotangent over that of uniform attention, limit",
        draws=draws,
        seed=SEED,
        plot=Plot(
            (
                Curve(
                    f"s = {deviation:g}",
                    sizes,
                    values,
                    np.array([one.stderr for one in found]),
                    np.full(2, right),
                    np.full(2, wrong),
                ),
            ),
            "width d",
            "input gradient / that of uniform attention",
        ),
        finding=f"measured over the prediction without the score path: {limit / wrong:.3f} ± {error / wrong:.3f}; "
        f"with it {limit / right:.3f} ± {np.hypot(error, own) / right:.3f}",
    )


def _check(deviation: float, percent: float, draws: int) -> Check:
    return Check(
        id=f"whole_networks.score-path-{deviation:g}",
        statement=f"Through random logits of deviation {deviation:g} the loss feels positions as the closed form says.",
        formula="G += τ²σ_Q²σ_K²σ_V²σ_O² mean_h [W∘t + u], W = β₁² G∘DDᵀ",
        source="this toolkit's backward recursion",
        settings=f"T = {LENGTH}, L = {DEPTH}, Pre-RMSNorm, no MLP, α = {ALPHA}, β = {BETA}, Σ_0 = I, (d, H = d_k) = "
        f"{', '.join(map(str, SIZES))}",
        estimator="networks written from the definitions in JAX, ratio to the same networks without scores, the limit "
        "of both sizes by slope/d",
        tolerance=Statistical(percent=percent),
        control="no way back through the scores",
        measure=partial(measure, deviation, draws),
        quick=False,
    )


CHECKS = (_check(0.3, 2.0, 8000), _check(1.0, 5.0, 16_000))
