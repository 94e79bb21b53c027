"""Attention that takes any prescribed path of kernels from layer to layer."""

import itertools
from typing import Any

import numpy as np

from kernelprop import door
from kernelprop.attention.dense import Dense
from kernelprop.attention.stack import AttentionStack


def signal_preserving(kernels: Any, causal: bool = True, require_nonnegative: bool = True) -> AttentionStack:
    """Dense attention ``A_l = F_l F_{l−1}⁻¹`` with ``A_l Σ_{l−1} A_lᵀ = Σ_l``, ``F Fᵀ = Σ``.

    ``F`` is the lower Cholesky factor (causal) or the symmetric square root (He et al. 2023, section 3).

    Args:
        kernels: the path, ``(L + 1, T, T)``.
        causal: whether the attention is lower triangular.
        require_nonnegative: refuse negative entries, which a softmax can't realise. An entry within rounding
            of zero counts as zero.

    Raises:
        ValueError: for bad kernels; for a singular one that would have to be inverted, with its depth; for
            negative entries, with the first bad layer and entry.

    >>> path = [np.eye(2), [[1.0, 0.5], [0.5, 1.0]]]
    >>> signal_preserving(path).as_matrix()[0].round(6)
    array([[1.      , 0.      ],
           [0.5     , 0.866025]])
    """
    array = np.asarray(kernels)
    if array.ndim != 3 or len(array) < 2:
        raise ValueError(f"signal_preserving: shape {array.shape} is not (L + 1, T, T) with L at least 1")
    path = [door.kernel(k, f"signal_preserving: depth {depth}").astype(np.float64) for depth, k in enumerate(array)]
    ratio = _causal_ratio if causal else _symmetric_ratio
    layers = [ratio(before, after, layer) for layer, (before, after) in enumerate(itertools.pairwise(path), 1)]
    if require_nonnegative:
        layers = [_nonnegative(matrix, layer) for layer, matrix in enumerate(layers, 1)]
    return AttentionStack(Dense(np.stack(layers), None))


def _causal_ratio(before: np.ndarray, after: np.ndarray, layer: int) -> np.ndarray:
    """``F_l F_{l−1}⁻¹`` by a triangular solve; the strict upper triangle is exactly zero."""
    from scipy.linalg import solve_triangular

    factors = [_cholesky(kernel, layer - 1 + step) for step, kernel in enumerate((before, after))]
    return np.tril(solve_triangular(factors[0].T, factors[1].T, lower=False).T)


def _cholesky(kernel: np.ndarray, depth: int) -> np.ndarray:
    try:
        factor = np.linalg.cholesky(kernel)
    except np.linalg.LinAlgError:
        factor = np.zeros_like(kernel)
    pivots = np.diagonal(factor) ** 2
    if (pivots <= _rounding(kernel)).any():
        smallest = np.linalg.eigvalsh(kernel)[0]
        raise ValueError(
            f"signal_preserving: depth {depth}: the kernel is singular (smallest eigenvalue {smallest:.3g}); "
            "causal attention needs a positive definite one"
        )
    return factor


def _symmetric_ratio(before: np.ndarray, after: np.ndarray, layer: int) -> np.ndarray:
    values, vectors = np.linalg.eigh(before)
    if values[0] <= _rounding(before):
        raise ValueError(
            f"signal_preserving: depth {layer - 1}: the kernel is singular (smallest eigenvalue {values[0]:.3g}); "
            "its symmetric root has no inverse"
        )
    return symmetric_root(after) @ ((vectors / np.sqrt(values)) @ vectors.T)


def symmetric_root(kernel: np.ndarray) -> np.ndarray:
    """``F = Σ^{1/2}`` of a positive semidefinite kernel; eigenvalues within rounding of zero count as zero.

    >>> symmetric_root(np.ones((3, 3))).round(6)[0]
    array([0.57735, 0.57735, 0.57735])
    """
    values, vectors = np.linalg.eigh(kernel)
    kept = np.where(np.abs(values) <= _rounding(kernel), 0.0, values)
    return (vectors * np.sqrt(kept)) @ vectors.T


def _rounding(kernel: np.ndarray) -> float:
    return 4 * len(kernel) * float(np.finfo(np.float64).eps) * float(np.abs(kernel).max())


def _nonnegative(matrix: np.ndarray, layer: int) -> np.ndarray:
    rounded = np.where(np.abs(matrix) <= _rounding(matrix), 0.0, matrix)
    negative = np.argwhere(rounded < 0)
    if len(negative):
        i, j = (int(k) for k in negative[0])
        raise ValueError(
            f"signal_preserving: layer {layer}: attention entry ({i}, {j}) is {matrix[i, j]:.12g}; a softmax has no "
            "negative entries (require_nonnegative=False gives the plain linear operator)"
        )
    return rounded
