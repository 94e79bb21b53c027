"""What a softmax sublayer's scores, biases and rescalings receive: the second moments of its Jacobian."""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from kernelprop.attention.layer import AttentionLayer
from kernelprop.attention.softmax_part import entries, has_value_skip, softmax_part
from kernelprop.layers.pairing import pair, pairing
from kernelprop.split_kernel import SplitKernel

Rows = dict[str, Float[Array, "*layers"]]


def score_rows(layer: AttentionLayer, kernel: SplitKernel, cotangent: Float[Array, "T T"]) -> Rows:
    """The norms that pass through ``P`` of one headless layer ``A = (αI +) βDP``, every gain taken as 1.

    With ``t`` as in `score_kernel` (theory: backward recursion)

    * ``query = Σ_ii' Σ_ii' G_ii' D_i D_i' t_ii'``, for a unit temperature and random keys,
    * ``bias = Σ_ij G_ii D_i² P_ij² C^i_jj``, ``C^i`` the kernel of the keys less their mean under row ``i``,
    * ``rescale = Σ_i G_ii (PΣPᵀ)_ii``,

    the first two times ``β²``, and so the third; for a skip of the values ``mix_alpha = ⟨G, Σ⟩`` and ``mix_beta =
    ⟨G, DPΣPᵀD⟩``. All but ``mix_alpha`` are NaN where ``A`` has negative entries or empty rows: no softmax.

    Cost: five products of the operator, ``O(T²)`` where it is structured.
    """
    share, base = softmax_part(layer)
    matrix = entries(base, kernel.rest.dtype)
    rescale = jnp.sum(matrix, axis=1)
    softmax = jnp.all(matrix >= 0) & jnp.all(rescale > 0)
    rescale = jnp.where(softmax, rescale, jnp.ones_like(rescale))
    centred, edge = centre(kernel)
    moved = base.act(edge) / rescale
    t, keys, outputs = score_kernel(base, rescale, centred)
    attended = outputs + (moved[:, None] + moved[None, :])
    weighed = cotangent * (rescale[:, None] * rescale[None, :])
    probability = matrix / rescale[:, None]
    spread = jnp.diagonal(centred)[None, :] - 2 * keys.T + jnp.diagonal(outputs)[:, None]
    rows = {
        # Rounding can push a vanishing sum of squares below zero.
        "query": jnp.maximum(share**2 * pair(weighed * kernel.join(), t), 0.0),
        "bias": share**2 * jnp.sum(jnp.diagonal(weighed)[:, None] * (probability**2 * spread)),
        "rescale": share**2 * jnp.sum(jnp.diagonal(cotangent) * jnp.diagonal(attended)),
    }
    if has_value_skip(layer):
        rows["mix_beta"] = pair(weighed, attended)
    rows = {name: _where_softmax(softmax, value) for name, value in rows.items()}
    return rows | ({"mix_alpha": pairing(cotangent, kernel)} if has_value_skip(layer) else {})


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


def _where_softmax(softmax: Bool[Array, ""], value: Array) -> Array:
    return jnp.where(softmax, value, jnp.full_like(value, jnp.nan))
