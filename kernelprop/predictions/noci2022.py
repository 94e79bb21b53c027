"""Noci et al. 2022, "Signal Propagation in Transformers" (arXiv 2206.03126), in the notation of this package.

One attention layer ``S = A X W_V`` with uniform attention ``A = 11ᵀ/T``, ``C = I − 11ᵀ/T``; Gaussian weights whose
entries have variances ``σ_v²``, ``σ_k²`` (not divided by the fan-in). Squared Frobenius norms of Jacobians.
"""

from typing import Any, NamedTuple

import numpy as np

from kernelprop import door


class Moments(NamedTuple):
    """The sum of all inner products ``1ᵀΣ1`` and the trace ``tr Σ``."""

    inner_products: float
    trace: float


def value_jacobian(inputs: Any, value_width: int) -> float:
    """``E‖∂S/∂W_V‖² = (d_v/T) 1ᵀXXᵀ1`` for a fixed input ``X (T, d)``.

    >>> value_jacobian([[1.0, 0.0], [0.0, 1.0]], value_width=3)
    3.0
    """
    x = _inputs(inputs)
    return float(value_width * np.sum(x.sum(0) ** 2) / len(x))


def query_jacobian(inputs: Any, value_width: int, value_variance: float = 1.0, key_variance: float = 1.0) -> float:
    """``E‖∂S/∂W_Q‖² = d_v σ_v² σ_k² T⁻² ‖X‖²_F ‖XᵀCX‖²_F`` for a fixed input, logits scaled by ``1/√d_k``.

    Zero when all rows of ``X`` agree: rank collapse kills the gradients of queries, and of keys alike.

    >>> query_jacobian([[1.0, 2.0], [1.0, 2.0]], value_width=3)
    0.0
    """
    x = _inputs(inputs)
    centred = x - x.mean(0)
    scatter = centred.T @ centred
    return float(value_width * value_variance * key_variance * np.sum(x**2) * np.sum(scatter**2) / len(x) ** 2)


def expected_value_jacobian(
    length: int, width: int, value_width: int, correlation: float = 0.0, input_variance: float = 1.0
) -> float:
    """``d_v d σ_x² (1 + (T−1)ρ)`` for Gaussian inputs of correlation ``ρ`` between positions; exact.

    >>> expected_value_jacobian(4, 8, 8)
    64.0
    """
    return float(value_width * width * input_variance * (1 + (length - 1) * correlation))


def expected_query_jacobian(
    length: int,
    width: int,
    value_width: int,
    correlation: float = 0.0,
    input_variance: float = 1.0,
    value_variance: float = 1.0,
    key_variance: float = 1.0,
) -> float:
    """``d_v d σ_v² σ_k² σ_x⁶ (T−1)(T+d)(1−ρ)² (Td + 4(1−ρ))/T²``, exact for every ``T`` and ``d``.

    Query norms thus grow as the cube of the input's scale, value norms linearly.

    >>> expected_query_jacobian(2, 1, 1)
    4.5
    """
    apart = 1 - correlation
    shape = width * (length - 1) * (length + width) * apart**2 * (length * width + 4 * apart) / length**2
    return float(value_width * value_variance * key_variance * input_variance**3 * shape)


def leading_query_jacobian(
    length: int,
    width: int,
    value_width: int,
    correlation: float = 0.0,
    input_variance: float = 1.0,
    value_variance: float = 1.0,
    key_variance: float = 1.0,
) -> float:
    """The leading order ``d_v σ_v² σ_k² σ_x⁶ (T−1)(T+d)(1−ρ)² d²/T``: what ``expected_query_jacobian`` tends to.

    It falls short by the factor ``1 + 4(1−ρ)/(Td)``.

    >>> leading_query_jacobian(2, 1, 1)
    1.5
    """
    shape = (length - 1) * (length + width) * (1 - correlation) ** 2 * width**2 / length
    return float(value_width * value_variance * key_variance * input_variance**3 * shape)


def moments_through_depth(kernel0: Any, depth: int, attention_branch: float, mlp_branch: float) -> Moments:
    """``1ᵀΣ_L1`` and ``tr Σ_L`` under uniform attention, linear MLPs and skips of weight 1; exact.

    ``𝒞_L = ((1+β₁²)(1+β₂²))^L 𝒞_0``, ``tr Σ_L = (1+β₂²)^L (tr Σ_0 + (𝒞_0/T)((1+β₁²)^L − 1))``; infinite where they
    outgrow float64.

    >>> moments_through_depth(np.eye(2), 1, 1.0, 1.0)
    Moments(inner_products=8.0, trace=6.0)
    """
    kernel = door.kernel(kernel0, "kernel0").astype(np.float64)
    with np.errstate(over="ignore"):
        attention, mlp = ((1 + np.square(np.float64(branch))) ** depth for branch in (attention_branch, mlp_branch))
        return _grown(kernel, float(attention - 1), float(attention * mlp), float(mlp))


def moments_at_infinite_depth(kernel0: Any, attention_branch: float, mlp_branch: float) -> Moments:
    """The limit of `moments_through_depth` with branches ``β = β̃/√L``, ``L → ∞``.

    ``𝒞 → e^{β̃₁²+β̃₂²} 𝒞_0``, ``tr → e^{β̃₂²}(tr_0 + (𝒞_0/T)(e^{β̃₁²} − 1))``; infinite where they outgrow float64.

    >>> moments_at_infinite_depth(np.eye(2), 0.0, 0.0)
    Moments(inner_products=2.0, trace=2.0)
    """
    kernel = door.kernel(kernel0, "kernel0").astype(np.float64)
    with np.errstate(over="ignore"):
        attention, mlp = (np.square(np.float64(branch)) for branch in (attention_branch, mlp_branch))
        return _grown(kernel, float(np.expm1(attention)), float(np.exp(attention + mlp)), float(np.exp(mlp)))


def limiting_cosine(length: int, attention_branch: float) -> float:
    """The mean cosine at infinite depth for orthogonal input: ``(e^{β̃₁²}−1)/(T−1+e^{β̃₁²})``, below 1.

    Without the depth scaling it tends to 1.

    >>> round(limiting_cosine(16, 1.0), 6)
    0.096978
    """
    with np.errstate(over="ignore"):
        square = np.square(np.float64(attention_branch))
    # Divided by e^{β̃₁²}, which can be too large for a number.
    grown = -np.expm1(-square)
    return float(grown / (length * np.exp(-square) + grown))


def _grown(kernel: np.ndarray, attention: float, both: float, mlp: float) -> Moments:
    """Both moments, from the growth of each and from what attention adds; what is 0 stays 0 however it is grown."""

    def times(growth: float, number: float) -> float:
        return 0.0 if number == 0 or growth == 0 else growth * number

    total, trace = float(kernel.sum()), float(np.trace(kernel))
    return Moments(times(both, total), times(mlp, trace + times(attention, total / len(kernel))))


def _inputs(inputs: Any) -> np.ndarray:
    x = door.real_array(inputs, "inputs").astype(np.float64)
    if x.ndim != 2 or 0 in x.shape:
        raise ValueError(f"inputs: shape {x.shape} is not (T, d)")
    return x
