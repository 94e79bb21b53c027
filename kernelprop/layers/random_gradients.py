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
from kernelprop.layers.pairing import pairing
from kernelprop.layers.random_attention import BATCH_ENTRIES
from kernelprop.layers.random_logits import Factor, factor, logits
from kernelprop.layers.score_gradients import Rows, Scores, centre, softmax_rows
from kernelprop.split_kernel import SplitKernel


@attention.backward.register
def backward(
    layer: RandomSoftmax,
    gains: Gains | None,
    kernel: SplitKernel,
    cotangent: Float[Array, "T T"],
    key: Array | None = None,
) -> tuple[Float[Array, "T T"], Rows]:
    """The means over the draws of the way through, the value's and the score's path (theory: score path).

    ``G ← σ_V² σ_O² mean [AᵀGA + (τ σ_Q σ_K)² (W∘t + u)]``, ``W = G ∘ DDᵀ``, ``t`` and ``u`` what queries and keys
    send back; ``W_Q`` receives ``(τ σ_K)² ⟨Σ∘W, t⟩`` and ``W_K`` the same with ``σ_Q``. The score's path takes the
    values as independent of the layers above, as a first-order query row does.

    Raises:
        ValueError: for random logits without a key, and for rotary positions, whose score path isn't known.
    """
    if layer.frequencies is not None:
        raise ValueError("gradient_norms: rotary positions: the scores' way back isn't known under them")
    if layer.is_random and key is None:
        raise ValueError("random attention: a key is wanted, None was given")
    drawn = with_gains(layer, gains)
    pulled, rows = _means(drawn, kernel, cotangent, key if layer.is_random else None)
    scores = rows.pop("scores")
    strength = drawn.tau * layer.query_gain * layer.key_gain if layer.is_random else jnp.zeros_like(layer.tau)
    rows |= {
        "query": (layer.tau * layer.key_gain) ** 2 * rows["query"],
        "key": (layer.tau * layer.query_gain) ** 2 * rows["query"],
    }
    rows = {name: jnp.zeros_like(row) if _is_silent(layer, name) else row for name, row in rows.items()}
    below, rows = attention.with_gains(gains, pulled, pairing(pulled, kernel), rows)
    values = 1.0 if gains is None else (gains.value * gains.output) ** 2
    return below + values * strength**2 * scores, rows


def _is_silent(layer: RandomSoftmax, name: str) -> bool:
    """Logits that vanish as heads grow wide leave queries and keys no gradient either."""
    return name in ("query", "key") and not layer.is_random


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
    pulled = _product(mixed.T, _product(cotangent, mixed))
    found = softmax_rows(Dense(probability, None), ones, probability, kernel, _weighed(cotangent, rescale))
    rows = {name: share**2 * found.rows[name] for name in ("query", "bias")}
    rows["rescale"] = jnp.sum(jnp.diagonal(cotangent) * _attended(mixed, rescale, layer, kernel))
    weighed = share**2 * _weighed(cotangent, rescale)
    rows["scores"] = weighed * found.t + _through_keys(probability, kernel, weighed, found)
    return pulled, rows


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


def _through_keys(
    probability: Float[Array, "T T"], kernel: SplitKernel, weighed: Float[Array, "T T"], found: Scores
) -> Float[Array, "T T"]:
    """``u = Σ∘(PᵀW̃P) − [(PᵀW̃)∘S]P − ([(PᵀW̃)∘S]P)ᵀ + Pᵀ(W̃∘PΣPᵀ)P``, ``W̃ = Σ∘W``, ``S = ΣPᵀ``.

    As `score_kernel`'s ``t`` it doesn't change when the values' ``Σ`` is centred.
    """
    centred, _ = centre(kernel)
    weighed = kernel.join() * weighed
    left = _product(probability.T, weighed)
    edge = _product(left * found.keys, probability)
    ends = _product(_product(probability.T, weighed * found.outputs), probability)
    return centred * _product(left, probability) - (edge + edge.T) + ends


def _attended(
    mixed: Float[Array, "T T"], rescale: Float[Array, "T"], layer: RandomSoftmax, kernel: SplitKernel
) -> Float[Array, "T"]:
    """The diagonal of ``NΣNᵀ`` for ``N = βP − γP_0``, what ``D`` multiplies."""
    eye = jnp.eye(layer.length, dtype=mixed.dtype)
    inside = (mixed - layer.identity_weight * eye) / rescale[:, None]
    return jnp.sum(inside * _product(inside, kernel.join()), axis=1)


def _weighed(cotangent: Float[Array, "T T"], rescale: Float[Array, "T"]) -> Float[Array, "T T"]:
    return cotangent * (rescale[:, None] * rescale[None, :])


def _product(left: Array, right: Array) -> Array:
    return jnp.matmul(left, right, precision=lax.Precision.HIGHEST)
