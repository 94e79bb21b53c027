"""What a softmax sublayer's scores, biases and rescalings receive: the second moments of its Jacobian."""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from kernelprop.attention.layer import AttentionLayer
from kernelprop.attention.softmax_part import entries, has_value_skip, softmax_part
from kernelprop.layers.pairing import pair, pairing
from kernelprop.powers_of_two import exponent, power, times_power
from kernelprop.split_kernel import SplitKernel

Rows = dict[str, Float[Array, "*layers"]]


class Scores(NamedTuple):
    """One head's second moments: the rows, and ``t``, ``ΣPᵀ`` and ``PΣPᵀ`` of the centred keys."""

    rows: Rows
    t: Float[Array, "T T"]
    keys: Float[Array, "T T"]
    outputs: Float[Array, "T T"]


def score_rows(layer: AttentionLayer, kernel: SplitKernel, cotangent: Float[Array, "T T"]) -> Rows:
    """The norms that pass through ``P`` of one headless layer ``A = (αI +) βDP``, every gain taken as 1.

    Those of `softmax_rows` times ``β²``; for a skip of the values also ``mix_alpha = ⟨G, Σ⟩`` and ``mix_beta =
    ⟨G, DPΣPᵀD⟩``. All but ``mix_alpha`` are NaN where ``A`` has negative entries or empty rows: no softmax.

    Cost: five products of the operator, ``O(T²)`` where it is structured.
    """
    share, base = softmax_part(layer)
    matrix = entries(base, kernel.rest.dtype)
    rescale = jnp.sum(matrix, axis=1)
    softmax = jnp.all(matrix >= 0) & jnp.all(rescale > 0)
    rescale = jnp.where(softmax, rescale, jnp.ones_like(rescale))
    found = softmax_rows(base, rescale, matrix / rescale[:, None], kernel, cotangent).rows
    mix_beta = found.pop("attended")
    # An infinite row of a softmax that has no share is none.
    rows = {name: jnp.where(share == 0, jnp.zeros_like(row), share**2 * row) for name, row in found.items()}
    if not has_value_skip(layer):
        return _where_softmax(softmax, rows)
    return _where_softmax(softmax, rows | {"mix_beta": mix_beta}) | {"mix_alpha": pairing(cotangent, kernel)}


def softmax_rows(
    layer: AttentionLayer,
    rescale: Float[Array, "T"],
    probability: Float[Array, "T T"],
    kernel: SplitKernel,
    cotangent: Float[Array, "T T"],
) -> Scores:
    """The norms through ``P``, the operator ``layer`` being ``DP``; ``t`` as in `score_kernel`.

    * ``query = Σ_ii' Σ_ii' G_ii' D_i D_i' t_ii'``, for a unit temperature and random keys,
    * ``query_rounding = Σ_i Σ_ii G_ii D_i² (PΣPᵀ)_ii²``: what rounding leaves in the place of ``query``, times ``u²``,
    * ``bias = Σ_ij G_ii D_i² P_ij² C^i_jj``, ``C^i`` the kernel of the keys less their mean under row ``i``,
    * ``rescale = Σ_i G_ii (PΣPᵀ)_ii``, and ``attended = ⟨G, DPΣPᵀD⟩``.

    A row of ``P`` that attends to one position alone has no scores to move: ``t``, ``query`` and ``bias`` are exactly 0
    there. Kernels and cotangents are scaled by powers of two, which changes no digit, so that a row is right whenever
    it is a number of the type, however far from 1 its factors are.
    """
    centred, edge = centre(kernel)
    # The largest entries of what is positive are on its diagonal; of rounding they need not be, and it is squared.
    sizes = jnp.max(jnp.diagonal(cotangent)), jnp.max(kernel.diagonal()), jnp.max(jnp.abs(centred))
    loss, whole, apart = exponents = exponent(jnp.stack(sizes))
    of_loss, of_whole, of_apart = power(-exponents, centred.dtype)
    cotangent, kernel, centred = cotangent * of_loss, kernel.scaled(of_whole), centred * of_apart
    weighed = cotangent * (rescale[:, None] * rescale[None, :])
    moved = layer.act(edge * of_whole) / rescale
    t, keys, outputs = score_kernel(layer, rescale, centred)
    choice = chooses(probability)
    t = jnp.where(choice[:, None] & choice[None, :], t, jnp.zeros_like(t))
    attended = outputs * (of_whole / of_apart) + (moved[:, None] + moved[None, :])
    spread = jnp.diagonal(centred)[None, :] - 2 * keys.T + jnp.diagonal(outputs)[:, None]
    spread = jnp.where(choice[:, None], probability**2 * spread, jnp.zeros_like(spread))
    both = loss + whole
    found = {
        # Rounding can push a vanishing sum of squares below zero.
        "query": (jnp.maximum(pair(weighed * kernel.join(), t), 0.0), both + 2 * apart),
        # A row's scores are P_ij (s_j − Σ_k P_ik s_k), s_j = ⟨g_i, v_j⟩: the sum is rounded, and all scores with it.
        "query_rounding": (
            jnp.sum(jnp.diagonal(weighed) * kernel.diagonal() * jnp.diagonal(attended) ** 2),
            both + 2 * whole,
        ),
        "bias": (jnp.maximum(jnp.sum(jnp.diagonal(weighed)[:, None] * spread), 0.0), loss + apart),
        "rescale": (jnp.sum(jnp.diagonal(cotangent) * jnp.diagonal(attended)), both),
        "attended": (pair(weighed, attended), both),
    }
    values, exponents = (jnp.stack(column) for column in zip(*found.values(), strict=True))
    rows = dict(zip(found, times_power(values, exponents), strict=True))
    return Scores(rows, times_power(t, 2 * apart), times_power(keys, apart), times_power(outputs, apart))


def chooses(probability: Float[Array, "T T"]) -> Bool[Array, "T"]:
    """Which rows share their attention among positions: one that has a single position has no choice to change."""
    return jnp.sum(probability != 0, axis=1) > 1


def score_kernel(
    layer: AttentionLayer, rescale: Float[Array, "T"], kernel: Float[Array, "T T"]
) -> tuple[Float[Array, "T T"], Float[Array, "T T"], Float[Array, "T T"]]:
    """``t``, ``ΣPᵀ`` and ``PΣPᵀ`` for ``P = D⁻¹A``.

    ``t_ii' = Σ_jj' P_ij P_i'j' (C^{ii'}_jj')²``, ``C^{ii'}`` centred with row ``i`` of ``P`` in ``j`` and row ``i'``
    in ``j'``; summed up, ``t = P(Σ∘Σ)Pᵀ − P(S∘S) − [P(S∘S)]ᵀ + (PΣPᵀ)∘(PΣPᵀ)``, ``S = ΣPᵀ`` (theory: backward
    recursion). ``t`` doesn't change when ``Σ`` is centred, and its four terms then cancel to what is left of a
    collapsed kernel, not to the rounding of the common part.
    """
    across = rescale[None, :]
    keys = layer.act(kernel) / across
    outputs = layer.act(keys.T) / across
    outputs = (outputs + outputs.T) / 2
    edge = layer.act((keys * keys).T) / across
    squares = layer.sandwich(kernel * kernel) / (rescale[:, None] * across)
    return squares - (edge + edge.T) + outputs * outputs, keys, outputs


def centre(kernel: SplitKernel) -> tuple[Float[Array, "T T"], Float[Array, "T"]]:
    """``R`` and ``e`` with ``Σ = R + e1ᵀ + 1eᵀ`` and ``R`` centred over positions, exactly 0 where all rows agree."""
    rest = kernel.rest
    # Means of equal numbers are that number to the last bit.
    means = rest[0] + jnp.mean(rest - rest[:1], axis=0)
    edge = means - (means[0] + jnp.mean(means - means[0])) / 2
    return rest - edge[:, None] - edge[None, :], edge + kernel.cross + kernel.common / 2


def _where_softmax(softmax: Bool[Array, ""], rows: Rows) -> Rows:
    return {name: jnp.where(softmax, row, jnp.full_like(row, jnp.nan)) for name, row in rows.items()}
