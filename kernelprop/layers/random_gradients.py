"""The attention sublayer with random queries and keys, backward."""

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Key

from kernelprop.attention.dense import Dense
from kernelprop.attention.random_softmax import RandomSoftmax
from kernelprop.attention.softmax import softmax
from kernelprop.layers import attention
from kernelprop.layers.block import with_gains
from kernelprop.layers.gains import Gains
from kernelprop.layers.pairing import pair, pairing
from kernelprop.layers.random_attention import BATCH_ENTRIES
from kernelprop.layers.random_logits import Factor, factor, logits
from kernelprop.layers.rotary_scores import ScorePath, rotary_scores
from kernelprop.layers.score_gradients import Rows, Scores, centre, softmax_rows
from kernelprop.precision import full_product
from kernelprop.split_kernel import SplitKernel

Matrix = Float[Array, "T T"]


@attention.backward.register
def backward(
    layer: RandomSoftmax,
    gains: Gains | None,
    kernel: SplitKernel,
    cotangent: Float[Array, "T T"],
    key: Array | None = None,
) -> tuple[Float[Array, "T T"], Rows]:
    """The means over the draws of the way through, the value's and the score's path (theory: score path).

    ``G ← σ_V² σ_O² mean [AᵀGA + (τ σ_Q σ_K)² (W∘t + u)]``, ``W = β² G ∘ DDᵀ``, ``t`` and ``u`` what queries and keys
    send back; ``W_Q`` receives ``(τ σ_K)² ⟨Σ∘W, t⟩`` and ``W_K`` the same with ``σ_Q``; rotary positions: see
    `rotary_scores`. The score's path takes a head's values as independent of the layers above, which infinitely many
    heads are. Of ``αI + D(βP − γP_0)`` the weights receive ``mix_alpha = ⟨G, Σ⟩``, ``mix_beta = ⟨G, DPΣPᵀD⟩`` and
    ``mix_gamma`` the same with ``P_0``; ``B`` moves both softmaxes.

    Raises:
        ValueError: for random logits without a key.
    """
    if layer.is_random and key is None:
        raise ValueError("random attention: a key is wanted, None was given")
    drawn = with_gains(layer, gains)
    pulled, rows = _means(drawn, kernel, cotangent, key if layer.is_random else None)
    scores = rows.pop("scores")
    strength = drawn.tau * layer.query_gain * layer.key_gain if layer.is_random else jnp.zeros_like(layer.tau)
    to_queries, to_keys = ((layer.tau * gain) ** 2 for gain in (layer.key_gain, layer.query_gain))
    rows |= {
        "query": to_queries * rows["query"],
        "key": to_keys * rows["query"],
        "query_rounding": to_queries * rows["query_rounding"],
    }
    rows = {name: jnp.zeros_like(row) if _is_silent(layer, name) else row for name, row in rows.items()}
    rows["mix_alpha"] = pairing(cotangent, kernel)
    below, rows = attention.with_gains(gains, pulled, pairing(pulled, kernel), rows)
    values = 1.0 if gains is None else (gains.value * gains.output) ** 2
    return below + values * strength**2 * scores, rows


def _is_silent(layer: RandomSoftmax, name: str) -> bool:
    """Logits that vanish as heads grow wide leave queries and keys no gradient either."""
    return name in ("query", "key", "query_rounding") and not layer.is_random


def _means(
    layer: RandomSoftmax, kernel: SplitKernel, cotangent: Float[Array, "T T"], key: Key[Array, ""] | None
) -> tuple[Float[Array, "T T"], dict[str, Array]]:
    """Stream over the draws, a batch at a time: ``AᵀGA``, and the rows with ``scores = W∘t + u`` among them."""
    count = layer.draws if layer.is_random else layer.bias_count
    batch = min(count, max(1, BATCH_ENTRIES // layer.length**2))
    root = factor(kernel)

    def one(number: Array) -> tuple[Array, dict[str, Array]]:
        own_key = None if key is None else jax.random.fold_in(key, number)
        found = _of_one_draw(layer, kernel, cotangent, root, own_key, number % layer.bias_count)
        # The last batch may have more numbers than there are draws.
        return jax.tree.map(lambda x: jnp.where(number < count, x, 0.0), found)

    def add(total: tuple, numbers: Array) -> tuple[tuple, None]:
        sums = one(numbers[0]) if batch == 1 else jax.tree.map(lambda x: jnp.sum(x, axis=0), jax.vmap(one)(numbers))
        return jax.tree.map(jnp.add, total, sums), None

    numbers = jnp.arange(-(-count // batch) * batch).reshape(-1, batch)
    zero = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), jax.eval_shape(one, numbers[0, 0]))
    total, _ = lax.scan(add, zero, numbers)
    return jax.tree.map(lambda x: x / count, total)


def _of_one_draw(
    layer: RandomSoftmax,
    kernel: SplitKernel,
    cotangent: Float[Array, "T T"],
    root: Factor,
    key: Key[Array, ""] | None,
    head: Array,
) -> tuple[Array, dict[str, Array]]:
    probability, at_rest = _softmaxes(layer, root, key, head)
    ones = jnp.ones_like(kernel.cross)
    rescale = ones if layer.rescale is None else jnp.asarray(layer.rescale, ones.dtype)
    share = layer.softmax_weight
    mixed = rescale[:, None] * (share * probability - layer.centre_weight * at_rest)
    mixed += layer.identity_weight * jnp.eye(layer.length, dtype=ones.dtype)
    pulled = full_product(mixed.T, full_product(cotangent, mixed))
    weighed = cotangent * (rescale[:, None] * rescale[None, :])
    found = softmax_rows(Dense(probability, None), ones, probability, kernel, weighed)
    scores = _scores(layer, probability, kernel, weighed, found)
    inside = share * probability - layer.centre_weight * at_rest
    return pulled, {
        "query": share**2 * scores.query,
        "query_rounding": share**2 * found.rows["query_rounding"],
        "scores": share**2 * scores.below,
        "bias": _bias(layer, probability, at_rest, kernel, jnp.diagonal(weighed)),
        "rescale": jnp.sum(jnp.diagonal(cotangent) * _diagonal(inside, kernel)),
        "mix_beta": found.rows["attended"],
        "mix_gamma": pair(weighed, full_product(full_product(at_rest, kernel.join()), at_rest.T)),
    }


def _softmaxes(
    layer: RandomSoftmax, root: Factor, key: Key[Array, ""] | None, head: Array
) -> tuple[Float[Array, "T T"], Float[Array, "T T"]]:
    """``P`` and ``P_0`` of the draw that the way through made of the same key."""
    bias = jnp.asarray(layer.bias, root.apart.dtype)
    base = jnp.where(layer.mask, bias[head] if bias.ndim == 3 else bias, -jnp.inf)
    at_rest = jnp.broadcast_to(softmax(base), (layer.length,) * 2)
    if key is None:
        return at_rest, at_rest
    return softmax(base + sum(logits(layer, root, key))), at_rest


def _scores(
    layer: RandomSoftmax, probability: Matrix, kernel: SplitKernel, weighed: Matrix, found: Scores
) -> ScorePath:
    """What the logits of one draw receive, every gain taken as 1."""
    if layer.frequencies is not None:
        return rotary_scores(probability, kernel, weighed, layer.frequencies)
    return ScorePath(found.rows["query"], weighed * found.t + _through_keys(probability, kernel, weighed, found))


def _through_keys(probability: Matrix, kernel: SplitKernel, weighed: Matrix, found: Scores) -> Matrix:
    """``u = Σ∘(PᵀW̃P) − [(PᵀW̃)∘S]P − ([(PᵀW̃)∘S]P)ᵀ + Pᵀ(W̃∘PΣPᵀ)P``, ``W̃ = Σ∘W``, ``S = ΣPᵀ``.

    As `score_kernel`'s ``t`` it doesn't change when the values' ``Σ`` is centred.
    """
    centred, _ = centre(kernel)
    weighed = kernel.join() * weighed
    left = full_product(probability.T, weighed)
    edge = full_product(left * found.keys, probability)
    ends = full_product(full_product(probability.T, weighed * found.outputs), probability)
    return centred * full_product(left, probability) - (edge + edge.T) + ends


def _bias(
    layer: RandomSoftmax, probability: Matrix, at_rest: Matrix, kernel: SplitKernel, weighed: Float[Array, "T"]
) -> Float[Array, ""]:
    """``Σ_ij W_ii nΣnᵀ``, ``n = β P_ij (e_j − P_i) − γ P⁰_ij (e_j − P⁰_i)``: what moving ``B_ij`` does to row ``i``."""
    centred, _ = centre(kernel)
    own, rest = layer.softmax_weight * probability, layer.centre_weight * at_rest
    by_row = full_product(probability, centred), full_product(at_rest, centred)
    of = jnp.diagonal(centred)[None, :]

    def squares(left: Array, right: Array) -> Array:
        return jnp.sum(left * right, axis=1)[:, None]

    one, other = squares(by_row[0], probability), squares(by_row[1], at_rest)
    both = squares(by_row[0], at_rest)
    spread = own**2 * (of - 2 * by_row[0] + one) + rest**2 * (of - 2 * by_row[1] + other)
    spread -= 2 * own * rest * (of - by_row[0] - by_row[1] + both)
    # Rounding can push a vanishing sum of squares below zero.
    return jnp.maximum(jnp.sum(weighed[:, None] * spread), 0.0)


def _diagonal(inside: Matrix, kernel: SplitKernel) -> Float[Array, "T"]:
    """The diagonal of ``NΣNᵀ``."""
    return jnp.sum(inside * full_product(inside, kernel.join()), axis=1)
