"""One attention layer ``S = A X W_V`` in numpy, differentiated by hand: the independent half of these checks."""

import numpy as np


def squared_jacobians(
    x: np.ndarray, value: np.ndarray, key: np.ndarray, query: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """``‖∂S/∂W_Q‖²`` and ``‖∂S/∂W_K‖²``, one a draw; the queries are zero where they are not given.

    ``x (n, T, d)``, ``value (n, d, d_v)``, ``key`` and ``query (n, d, d_k)``. ``∂A_ij/∂M_ij' = A_ij(δ_jj' − A_ij')``,
    ``M = X W_Q (X W_K)ᵀ/√d_k``, so that row ``i`` answers a change of its logits by
    ``(diag A_i − A_i A_iᵀ) X W_V``.
    """
    root = np.sqrt(key.shape[-1])
    keys, values = x @ key, x @ value
    queries = np.zeros_like(keys) if query is None else x @ query
    logits = queries @ np.swapaxes(keys, 1, 2) / root
    attention = np.exp(logits - logits.max(-1, keepdims=True))
    attention /= attention.sum(-1, keepdims=True)
    mean = attention @ values
    # (n, i, j, v): what row i's output feels of its logit j.
    answer = attention[..., None] * (values[:, None] - mean[:, :, None])
    # ∂S_iv/∂W_Q = x_i ⊗ Σ_j answer_ijv keys_j/√d_k, and ∂S_iv/∂W_K = Σ_j answer_ijv x_j ⊗ queries_i/√d_k.
    through_keys = np.einsum("nijv,njk->nivk", answer, keys) / root
    through_inputs = np.einsum("nijv,njd->nivd", answer, x) / root
    by_query = np.einsum("ni,ni->n", np.sum(x**2, -1), np.sum(through_keys**2, (-1, -2)))
    by_key = np.einsum("ni,ni->n", np.sum(queries**2, -1), np.sum(through_inputs**2, (-1, -2)))
    return by_query, by_key


def squared_value_jacobian(x: np.ndarray, value_width: int) -> np.ndarray:
    """``‖∂S/∂W_V‖² = d_v ‖A X‖²`` of uniform attention, one a draw."""
    return value_width * np.sum(x.sum(-2) ** 2, -1) / x.shape[-2]


def correlated(rng: np.random.Generator, draws: int, length: int, width: int, correlation: float) -> np.ndarray:
    """Gaussian inputs ``(draws, T, d)`` of unit variance, correlated between positions."""
    common = rng.normal(size=(draws, 1, width))
    return np.sqrt(correlation) * common + np.sqrt(1 - correlation) * rng.normal(size=(draws, length, width))
