"""What a real input kernel does to signal-preserving attention, and the schedule that suits it better.

E-SPA and U-SPA keep the diagonal at 1 for the ``Σ_0`` that they prescribe, by default the identity. For another
one, repeated tokens or correlated embeddings, it grows or shrinks with depth (theory: mismatch).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelprop import door
from kernelprop.architecture import Transformer
from kernelprop.attention.espa import espa
from kernelprop.attention.fit import nearest_gamma, nearest_rho, one_kernel, relative_distance, unit_mean_diagonal
from kernelprop.attention.schedules import espa_schedule, uspa_schedule
from kernelprop.attention.stack import AttentionStack
from kernelprop.attention.uspa import uspa
from kernelprop.infinite import propagate


@dataclass(frozen=True, eq=False)
class Mismatch:
    """How far the last kernel's diagonal is from the prescribed 1.

    Attributes:
        diagonal: ``diag Σ_L``, ``(T,)``, for ``Σ_0`` scaled to a mean diagonal of 1.
        maximum: the largest ``|diag Σ_L − 1|``.
        mean: the mean of it over positions.
    """

    diagonal: np.ndarray
    maximum: float
    mean: float


@dataclass(frozen=True, eq=False, kw_only=True)
class SignalFit:
    """A signal-preserving stack fitted to an input kernel, with what the fit changes.

    Attributes:
        parameter: ``"gamma0"`` or ``"rho0"``.
        value: its fitted value.
        attention: the stack whose schedule starts there.
        scale: what ``Σ_0`` was multiplied by to have a mean diagonal of 1.
        before: the mismatch of the stack that expects the identity.
        after: the mismatch of the fitted stack.
        distance_before: ``‖Σ_0 − I‖_F / ‖Σ_0‖_F``.
        distance_after: the same from the fitted kernel.
    """

    parameter: str
    value: float
    attention: AttentionStack
    scale: float
    before: Mismatch
    after: Mismatch
    distance_before: float
    distance_after: float


def mismatch(attention: Any, kernel0: Any) -> Mismatch:
    """Measure the diagonal blow-up that an input kernel causes in attention made for another one.

    Args:
        attention: an operator, such as ``espa(T, L)``, or matrices as for `dense`.
        kernel0: the true input kernel, ``(T, T)``. It is scaled to a mean diagonal of 1, which is what
            signal-preserving attention prescribes.

    Raises:
        ValueError: for a bad kernel, one of other length, and the zero kernel.

    >>> import kernelprop as kp
    >>> round(mismatch(kp.espa(16, 12), 0.8 * np.eye(16) + 0.2).maximum, 6)
    0.926107
    """
    kernel, _ = unit_mean_diagonal(one_kernel(kernel0, "kernel0"), "kernel0")
    return _measure(attention, kernel)


def fit_espa(kernel0: Any, depth: int, gamma: float = 0.005, causal: bool = True) -> SignalFit:
    """Choose the ``γ_0`` of E-SPA for an input kernel: the nearest ``e^{−γ_0|i−j|}`` with ``γ_0 ≥ γ_L``.

    Args:
        kernel0: the true input kernel, ``(T, T)``; it is scaled to a mean diagonal of 1.
        depth: the number of layers.
        gamma: the last layer's ``γ_L``.
        causal: whether a position attends only to itself and those before it.

    Returns:
        The fitted value, its stack, and the mismatch and distance before and after. A value of ``γ_L`` says that
        ``Σ_0`` is at least as correlated as the prescribed end: every layer is then the identity.

    Raises:
        ValueError: for a bad kernel, and for a non-causal schedule that needs negative entries.

    >>> import kernelprop as kp
    >>> lag = np.abs(np.arange(16)[:, None] - np.arange(16))
    >>> round(fit_espa(np.exp(-0.5 * lag), depth=12).value, 12)
    0.5
    """
    kernel, scale = unit_mean_diagonal(one_kernel(kernel0, "kernel0"), "kernel0")
    length, depth = len(kernel), door.count(depth, "fit_espa: depth")
    default = espa(length, depth, gamma, causal=causal, require_nonnegative=False)
    value = nearest_gamma(kernel, float(gamma))
    gammas = espa_schedule(depth, gamma, value)
    return _fit(kernel, scale, default, "gamma0", value, espa(length, gammas=gammas, causal=causal))


def fit_uspa(kernel0: Any, depth: int, rho: float = 0.8, causal: bool = True) -> SignalFit:
    """Choose the ``ρ_0`` of U-SPA for an input kernel: the nearest ``(1−ρ_0)I + ρ_0 11ᵀ`` with ``0 ≤ ρ_0 ≤ ρ_L``.

    Args:
        kernel0: the true input kernel, ``(T, T)``; it is scaled to a mean diagonal of 1.
        depth: the number of layers.
        rho: the last layer's ``ρ_L``.
        causal: whether a position attends only to itself and those before it.

    Returns:
        The fitted value, its stack, and the mismatch and distance before and after. A value of ``ρ_L`` says that
        ``Σ_0`` is at least as correlated as the prescribed end: every layer is then the identity.

    Raises:
        ValueError: for a bad kernel.

    >>> fit_uspa(0.8 * np.eye(16) + 0.2, depth=12).after.maximum < 1e-12
    True
    """
    kernel, scale = unit_mean_diagonal(one_kernel(kernel0, "kernel0"), "kernel0")
    length, depth = len(kernel), door.count(depth, "fit_uspa: depth")
    default = uspa(length, depth, rho, causal=causal)
    value = nearest_rho(kernel, float(rho))
    rhos = uspa_schedule(depth, rho, value)
    return _fit(kernel, scale, default, "rho0", value, uspa(length, rhos=rhos, causal=causal))


def _fit(
    kernel: np.ndarray, scale: float, default: AttentionStack, parameter: str, value: float, fitted: AttentionStack
) -> SignalFit:
    assumed = np.eye(len(kernel))
    lag = np.abs(np.arange(len(kernel))[:, None] - np.arange(len(kernel)))
    with np.errstate(invalid="ignore"):  # γ = ∞ at lag 0, which the other branch answers
        exponential = np.where(lag == 0, 1.0, np.exp(-value * lag))
    prescribed = exponential if parameter == "gamma0" else (1 - value) * assumed + value
    return SignalFit(
        parameter=parameter,
        value=value,
        attention=fitted,
        scale=scale,
        before=_measure(default, kernel),
        after=_measure(fitted, kernel),
        distance_before=relative_distance(kernel, assumed),
        distance_after=relative_distance(kernel, prescribed),
    )


def _measure(attention: Any, kernel: np.ndarray) -> Mismatch:
    diagonal = propagate(Transformer(attention), kernel, keep="last").diagonal[-1]
    excess = np.abs(diagonal - 1)
    return Mismatch(diagonal, float(excess.max()), float(excess.mean()))
