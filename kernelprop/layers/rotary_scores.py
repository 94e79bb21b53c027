"""The scores' way back under rotary positions."""

from typing import NamedTuple

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from kernelprop.layers.pairing import pair
from kernelprop.layers.score_gradients import centre
from kernelprop.precision import full_product
from kernelprop.split_kernel import SplitKernel

Matrix = Float[Array, "T T"]


class ScorePath(NamedTuple):
    """What one draw's scores receive, every gain taken as 1: ``⟨Σ∘W, t⟩`` and the cotangent kernel ``W∘t + u``."""

    query: Float[Array, ""]
    below: Matrix


def rotary_scores(
    probability: Matrix, kernel: SplitKernel, weighed: Matrix, frequencies: Float[Array, "m"]
) -> ScorePath:
    """The score path for logits of covariance ``Σ_ii' Σ_jj' mean_k cos θ_k((i−i') − (j−j'))``.

    The cosine of the difference is ``c_ii' c_jj' + s_ii' s_jj'``, ``c_ij = cos θ(i−j)`` and ``s_ij = sin θ(i−j)``: a
    sum over ``2m`` patterns ``C`` of what plain positions give with ``Σ∘C`` in the place of the queries' and the keys'
    ``Σ`` (theory: attention with random logits, and score path). The values' ``Σ`` is not turned.

    Args:
        probability: ``P``.
        kernel: ``Σ``.
        weighed: ``W = G ∘ DDᵀ``.
        frequencies: ``θ_k``.

    Cost: ten products for every pattern.
    """
    values, _ = centre(kernel)
    full = kernel.join()
    position = jnp.arange(len(full), dtype=full.dtype)
    lag = position[:, None] - position[None, :]
    keys = full_product(values, probability.T)
    outputs = full_product(probability, keys)

    def of_pattern(pattern: Matrix, sign: float) -> ScorePath:
        turned = full * pattern
        mixed = full_product(probability, turned)
        edge = full_product(mixed * keys.T, probability.T)
        squares = full_product(full_product(probability, turned * values), probability.T)
        # The transpose of an antisymmetric pattern's edge comes back with its sign.
        t = squares - (edge + sign * edge.T) + full_product(mixed, probability.T) * outputs
        loaded = turned * weighed
        left = full_product(probability.T, loaded)
        edge = full_product(left * keys, probability)
        ends = full_product(full_product(probability.T, loaded * outputs), probability)
        u = values * full_product(left, probability) - (edge + sign * edge.T) + ends
        return ScorePath(pair(loaded, t), pattern * (weighed * t + u))

    def add(total: ScorePath, frequency: Array) -> tuple[ScorePath, None]:
        both = of_pattern(jnp.cos(frequency * lag), 1.0), of_pattern(jnp.sin(frequency * lag), -1.0)
        return ScorePath(*(a + b + c for a, b, c in zip(total, *both, strict=True))), None

    total, _ = lax.scan(add, ScorePath(jnp.zeros((), full.dtype), jnp.zeros_like(full)), jnp.asarray(frequencies))
    count = frequencies.shape[0]
    return ScorePath(jnp.maximum(total.query / count, 0.0), total.below / count)
