"""Schedules of signal-preserving attention: how γ falls, or ρ rises, from the input to the last layer."""

from typing import Any

import numpy as np

from kernelprop import door


def espa_schedule(depth: int, gamma: float = 0.005, gamma0: float = np.inf) -> np.ndarray:
    """``γ_0 … γ_L`` with ``a(γ_l) = a(γ_0)^{1−l/L} a(γ_L)^{l/L}``, ``a(γ) = sqrt(1 − e^{−2γ})``.

    Every diagonal entry of every ``A_l``, except ``A_00 = 1``, is then the same number (He et al. 2023,
    section 4; theory: E-SPA schedule). Shape ``(L + 1,)``, float64.

    Raises:
        ValueError: for γ that isn't positive, or ``gamma > gamma0``.

    >>> espa_schedule(4).round(6)
    array([     inf, 0.189777, 0.052542, 0.016006, 0.005   ])
    """
    depth = door.count(depth, "espa: depth")
    ends = check_gammas([gamma0, gamma])
    log_scale = 0.5 * _log_variance(ends)
    share = np.arange(depth + 1) / depth
    # In the logarithm of a the schedule is linear, and the way back is the same function.
    logs = (1 - share) * log_scale[0] + share * log_scale[1]
    inner = -0.5 * _log_variance(-logs[1:-1])
    return _monotone(ends, inner)


def uspa_schedule(depth: int, rho: float = 0.8, rho0: float = 0.0) -> np.ndarray:
    """``ρ_0 … ρ_L`` with ``1 − ρ_l = (1 − ρ_0)^{1−l/L} (1 − ρ_L)^{l/L}``.

    Shape ``(L + 1,)``, float64 (He et al. 2023, section 4; theory: U-SPA schedule). Each ``ρ_l`` is rounded to
    float64: next to 1 that moves ``1 − ρ_l`` by up to 1e-16, and the layers lead to the ρ as rounded.

    Raises:
        ValueError: for ρ outside [0, 1), or ``rho < rho0``.

    >>> uspa_schedule(2, rho=0.75)
    array([0.  , 0.5 , 0.75])
    """
    depth = door.count(depth, "uspa: depth")
    ends = check_rhos([rho0, rho])
    share = np.arange(depth + 1) / depth
    inner = -np.expm1((1 - share) * np.log1p(-ends[0]) + share * np.log1p(-ends[1]))
    return _monotone(ends, inner[1:-1])


def _log_variance(x: np.ndarray) -> np.ndarray:
    """``log(1 − e^{−2x})`` for ``x ≥ 0``, to full precision where ``e^{−2x}`` is close to 1 and where it is tiny."""
    with np.errstate(divide="ignore", over="ignore"):
        near, far = np.log(-np.expm1(-2 * x)), np.log1p(-np.exp(-2 * x))
    return np.where(x < np.log(2) / 2, near, far)


def _monotone(ends: np.ndarray, inner: np.ndarray) -> np.ndarray:
    """Put the ends around the values between; none of those may turn back by the rounding of its logarithm."""
    accumulate = np.minimum.accumulate if ends[1] <= ends[0] else np.maximum.accumulate
    between = accumulate(np.clip(inner, *sorted(ends)))
    return np.concatenate([ends[:1], between, ends[1:]])


def check_gammas(gammas: Any) -> np.ndarray:
    """Return a schedule of positive decay rates, infinity allowed, as float64 ``(L + 1,)``."""
    array = _schedule(gammas, "gammas", allow_infinite=True)
    for index in np.flatnonzero(~(array > 0)):
        raise ValueError(f"espa: depth {index}: gamma is {array[index]:g}; it must be positive (infinity is allowed)")
    return array


def check_rhos(rhos: Any) -> np.ndarray:
    """Return a schedule of correlations in [0, 1) as float64 ``(L + 1,)``."""
    array = _schedule(rhos, "rhos", allow_infinite=False)
    for index in np.flatnonzero(~((array >= 0) & (array < 1))):
        raise ValueError(f"uspa: depth {index}: rho is {array[index]:g}; it must lie in [0, 1)")
    return array


def _schedule(values: Any, name: str, *, allow_infinite: bool) -> np.ndarray:
    array = door.real_array(values, name, allow_infinite=allow_infinite).astype(np.float64)
    if array.ndim != 1 or len(array) < 2:
        raise ValueError(f"{name}: a schedule has L + 1 values, at least 2; shape {array.shape} was given")
    return array
