"""Softmax attention with random queries and keys: the description of a matrix that is drawn anew in every head."""

from dataclasses import replace
from typing import Any, Literal, Self

import equinox as eqx
import numpy as np
from jaxtyping import Bool, Float, UInt32

from kernelprop import door
from kernelprop.attention.masked_bias import masked_bias, positive_rescale

DRAWS = 32
CHAINS = 8


class RandomSoftmax(eqx.Module):
    """``A = α I + D (β P − γ P_0)``, ``P = softmax(M + B + mask)``, ``P_0 = softmax(B + mask)``.

    ``M`` are the logits of Gaussian ``W_Q, W_K``, Gaussian as the head width grows, with ``Cov(M_ij, M_i'j') =
    (τ σ_Q σ_K)² Σ_ii' Σ_jj'`` (theory: attention with random logits). α = 0, β = 1, γ = 0 unless shaped.

    Shapes: ``bias (rows, T)`` or ``(H, rows, T)``, ``mask (rows, T)`` with ``rows`` 1 or ``T``; ``rescale (T,)``
    or None; ``frequencies (m,)`` or None. Numbers are array leaves, so that a sweep compiles once.
    """

    positions: int = eqx.field(static=True)
    heads: int | None = eqx.field(static=True)
    draws: int = eqx.field(static=True)
    chains: int = eqx.field(static=True)
    logit_scale: str = eqx.field(static=True)
    bias: Float[Any, "*heads rows T"]
    mask: Bool[Any, "rows T"]
    tau: Float[Any, ""]
    query_gain: Float[Any, ""]
    key_gain: Float[Any, ""]
    identity_weight: Float[Any, ""]
    softmax_weight: Float[Any, ""]
    centre_weight: Float[Any, ""]
    rescale: Float[Any, "T"] | None
    frequencies: Float[Any, "m"] | None
    seed: UInt32[Any, ""]

    @property
    def length(self) -> int:
        """The number of positions ``T``."""
        return self.positions

    @property
    def depth(self) -> None:
        """None: one layer, which a network repeats as often as it is deep, with new draws in each."""
        return None

    @property
    def is_random(self) -> bool:
        """Whether the logits survive a wide head: they vanish under the linear scale."""
        return self.logit_scale == "sqrt"

    def scaled_logits(self, factor: Any) -> Self:
        """The same attention with its logits multiplied: what gains of queries and keys and a temperature do."""
        return replace(self, tau=self.tau * factor)

    def in_words(self) -> str:
        """How its numbers are estimated."""
        seeded = f"seed {int(self.seed)}; standard errors from the chains"
        if self.heads is None:
            return f"means over {self.chains} independent chains of {self.draws} draws a layer, {seeded}"
        return (
            f"means over {self.chains} random networks of {self.heads} heads, {seeded}; the standard deviation between "
            f"networks is the standard error times {self.chains**0.5:.6g}"
        )

    @property
    def bias_count(self) -> int:
        """How many different biases the heads have."""
        return self.bias.shape[0] if self.bias.ndim == 3 else 1


def random_softmax(
    length: int,
    heads: int | None = None,
    tau: float = 1.0,
    causal: bool = False,
    bias: Any = None,
    mask: Any = None,
    *,
    draws: int | None = None,
    chains: int = CHAINS,
    seed: int = 0,
    query_gain: float = 1.0,
    key_gain: float = 1.0,
    logit_scale: Literal["sqrt", "linear"] = "sqrt",
    rotary: Any = None,
    rescale: Any = None,
) -> RandomSoftmax:
    """Attention at the usual initialisation: ``A = D softmax(τ Q Kᵀ/√d_k + B + mask)``, random queries and keys.

    With ``heads=None`` a layer's kernel is the mean over infinitely many heads, ``Σ ← E[A Σ Aᵀ]``, estimated in
    each of ``chains`` independent runs through the whole depth from ``draws`` matrices a layer. With ``heads=H``
    it is the mean over ``H`` draws: each chain is a random network, and the standard deviation between networks
    is the standard error times ``√chains``. The head width is infinite in both. Observables other than the kernel
    itself are means over networks then, which differ from those of the mean kernel by ``O(1/H)``: two tokens of
    correlation 1/2 under one head have a mean rank residual of .0937, their mean kernel one of .1176.

    What the estimate of one layer gets wrong enters the next one's logits, so that a deep mean is off by
    ``O(1/draws)`` beside its standard error: double ``draws`` to see it.

    Args:
        length: the number of positions ``T``.
        heads: the number of heads ``H``, None for infinitely many.
        tau: the factor ``τ`` of the logits.
        causal: whether a position attends only to itself and those before it.
        bias: ``B``, ``(T, T)``, or ``(H, T, T)`` with one a head (infinitely many heads have them in turn);
            minus infinity masks.
        mask: bool, ``(T, T)``, or ``(T,)`` over keys (padding); True = may attend.
        draws: matrices a layer and chain where ``heads`` is None; 32, rounded up to a multiple of the biases.
        chains: independent runs through the depth, at least 2.
        seed: a whole number in 0…2³²−1.
        query_gain: ``σ_Q``, the standard deviation of the entries of ``W_Q`` times ``√d``.
        key_gain: ``σ_K``.
        logit_scale: ``"sqrt"`` is ``1/√d_k``; ``"linear"`` is ``1/d_k``, under which the logits of a wide head
            vanish and the attention is ``D softmax(B + mask)``.
        rotary: angular frequencies ``θ_k`` of rotary positions, ``(m,)``, as from `rotary_frequencies`.
        rescale: ``D``, positive, ``(T,)``; multiplies the rows.

    Raises:
        ValueError: for numbers that aren't finite, other shapes, a row whose every key is masked, a seed
            outside, and draws that don't fit the heads.

    >>> random_softmax(4, tau=2.0, causal=True).draws
    32
    >>> random_softmax(4, seed=-1)
    Traceback (most recent call last):
    ValueError: random_softmax: seed: -1 is outside 0 to 4294967295
    """
    name = "random_softmax"
    length = door.count(length, f"{name}: length")
    if logit_scale not in ("sqrt", "linear"):
        raise ValueError(f"{name}: logit_scale: {logit_scale!r} is unknown; use 'sqrt' (1/√d_k) or 'linear' (1/d_k)")
    parts = masked_bias(length, bias, mask, causal, name)
    biases = len(parts.bias) if parts.bias.ndim == 3 else 1
    return RandomSoftmax(
        positions=length,
        heads=None if heads is None else door.count(heads, f"{name}: heads"),
        draws=_draws(heads, draws, biases),
        chains=door.count(chains, f"{name}: chains", least=2),
        logit_scale=logit_scale,
        bias=parts.bias,
        mask=parts.mask,
        tau=_number(tau, "tau"),
        query_gain=_number(query_gain, "query_gain"),
        key_gain=_number(key_gain, "key_gain"),
        identity_weight=np.zeros(()),
        softmax_weight=np.ones(()),
        centre_weight=np.zeros(()),
        rescale=None if rescale is None else positive_rescale(length, rescale, name),
        frequencies=None if rotary is None else _frequencies(rotary),
        seed=_seed(seed),
    )


def shaped_attention(
    length: int, alpha: float = 1.0, beta: float = 1.0, gamma: float = 1.0, **options: Any
) -> RandomSoftmax:
    """Shaped attention ``A = αI + D (β softmax(logits + B + mask) − γ softmax(B + mask))``.

    The third term is the second at logits 0, its mean at initialisation to leading order, so that with β = γ
    and small logits the attention is near ``αI`` (Noci et al. 2023, arXiv 2306.17759).

    Args:
        length: the number of positions ``T``.
        alpha: the identity's weight.
        beta: the softmax's.
        gamma: that of its centre.
        **options: as for `random_softmax`.

    >>> float(shaped_attention(4, beta=0.5, tau=0.1).softmax_weight)
    0.5
    """
    weights = [_number(w, n, "shaped_attention") for w, n in ((alpha, "alpha"), (beta, "beta"), (gamma, "gamma"))]
    identity, softmax, centre = weights
    plain = random_softmax(length, **options)
    return replace(plain, identity_weight=identity, softmax_weight=softmax, centre_weight=centre)


def rotary_frequencies(head_width: int, base: float = 10_000.0) -> Float[np.ndarray, "m"]:
    """``θ_k = base^(−2k/d_k)``, ``k = 0 … d_k/2 − 1``: the angular frequencies of rotary positions.

    Source: Su et al. 2021, arXiv 2104.09864.

    Raises:
        ValueError: for an odd width, and a base that isn't positive.

    >>> rotary_frequencies(4)
    array([1.  , 0.01])
    """
    width = door.count(head_width, "rotary: head_width", least=2)
    if width % 2:
        raise ValueError(f"rotary: head_width: {width} is odd; rotations act on pairs")
    base = door.real_number(base, "rotary: base")
    if base <= 0:
        raise ValueError(f"rotary: base: {base:g} is not positive")
    return base ** (-2 * np.arange(width // 2) / width)


def _number(value: Any, name: str, who: str = "random_softmax") -> np.ndarray:
    return np.asarray(door.real_number(value, f"{who}: {name}"), np.float64)


def _draws(heads: int | None, draws: int | None, biases: int) -> int:
    if heads is not None:
        if draws is not None:
            raise ValueError(f"random_softmax: draws={draws} beside heads={heads}; a layer has one draw a head")
        if biases not in (1, heads):
            raise ValueError(f"random_softmax: bias: {biases} biases for heads={heads}; give one, or one a head")
        return heads
    if draws is None:
        return -(-DRAWS // biases) * biases
    draws = door.count(draws, "random_softmax: draws")
    if draws % biases:
        raise ValueError(f"random_softmax: draws={draws} is no multiple of the {biases} biases, which come in turn")
    return draws


def _frequencies(rotary: Any) -> np.ndarray:
    frequencies = door.real_array(rotary, "random_softmax: rotary").astype(np.float64)
    if frequencies.ndim != 1 or not len(frequencies):
        raise ValueError(
            f"random_softmax: rotary: shape {frequencies.shape} is not (m,); frequencies are wanted, such as "
            "kp.rotary_frequencies(head_width)"
        )
    return frequencies


def _seed(seed: Any) -> np.ndarray:
    seed = door.count(seed, "random_softmax: seed", least=-(2**63))
    if not 0 <= seed < 2**32:
        raise ValueError(f"random_softmax: seed: {seed} is outside 0 to {2**32 - 1}")
    return np.asarray(seed, np.uint32)
