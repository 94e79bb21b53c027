"""What a softmax sublayer's scores, biases and rescalings receive: the second moments of its Jacobian."""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from kernelprop.attention.layer import AttentionLayer
from kernelprop.attention.softmax_part import entries, has_value_skip, softmax_part
from kernelprop.layers.pairing import pair, pairing
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
    rows = {name: share**2 * row for name, row in found.items()}
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
    """
    centred, edge = centre(kernel)
    moved = layer.act(edge) / rescale
    t, keys, outputs = score_kernel(layer, rescale, centred)
    attended = outputs + (moved[:, None] + moved[None, :])
    weighed = cotangent * (rescale[:, None] * rescale[None, :])
    spread = jnp.diagonal(centred)[None, :] - 2 * keys.T + jnp.diagonal(outputs)[:, None]
    rows = {
        # Rounding can push a vanishing sum of squares below zero.
        "query": jnp.maximum(pair(weighed * kernel.join(), t), 0.0),
        # A row's scores are P_ij (s_j − Σ_k P_ik s_k), s_j = ⟨g_i, v_j⟩: the sum is rounded, and all scores with it.
        "query_rounding": jnp.sum(jnp.diagonal(weighed) * kernel.diagonal() * jnp.diagonal(attended) ** 2),
        "bias": jnp.maximum(jnp.sum(jnp.diagonal(weighed)[:, None] * (probability**2 * spread)), 0.0),
        "rescale": jnp.sum(jnp.diagonal(cotangent) * jnp.diagonal(attended)),
        "attended": pair(weighed, attended),
    }
    return Scores(rows, t, keys, outputs)


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
