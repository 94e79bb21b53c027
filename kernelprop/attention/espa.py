"""E-SPA: causal attention that takes one exponential kernel to the next (He et al. 2023, section 4)."""

from typing import Any

import numpy as np

from kernelprop import door
from kernelprop.attention.prescribed import signal_preserving
from kernelprop.attention.schedules import check_gammas, espa_schedule
from kernelprop.attention.semiseparable import Origin, Semiseparable
from kernelprop.attention.stack import AttentionStack


def espa(
    length: int,
    depth: int | None = None,
    gamma: float = 0.005,
    gamma0: float = np.inf,
    causal: bool = True,
    *,
    gammas: Any = None,
    require_nonnegative: bool = True,
) -> AttentionStack:
    """Attention whose layer ``l`` takes ``e^{−γ_{l−1}|i−j|}`` to ``e^{−γ_l|i−j|}``.

    ``A_l = F_l F_{l−1}⁻¹``, ``F`` the Cholesky factor of the exponential kernel (its symmetric square root if
    not causal). The causal layers act by prefix sums in ``O(T²)`` a kernel; the others are dense.

    Args:
        length: the number of positions ``T``.
        depth: the number of layers, 1 if not given.
        gamma: the last layer's decay rate ``γ_L``.
        gamma0: the input's; infinity is the identity kernel.
        causal: whether a position attends only to itself and those before it.
        gammas: a whole schedule ``γ_0 … γ_L`` instead of the three above.
        require_nonnegative: refuse a schedule that a softmax can't realise. With False, a rising γ gives the
            plain linear operator, negative entries and all.

    Raises:
        ValueError: for a γ that isn't positive, and for a rising one, naming the first bad layer and entry; for a
            depth below 1.

    >>> espa(3, gammas=[1.0, 0.2]).as_matrix()[0].round(6)
    array([[1.      , 0.      , 0.      ],
           [0.591573, 0.617479, 0.      ],
           [0.484339, 0.278391, 0.617479]])
    """
    length = door.count(length, "espa: length")
    if gammas is None:
        schedule = _falling_schedule(1 if depth is None else depth, gamma, gamma0, length, require_nonnegative)
    else:
        schedule = check_gammas(gammas)
        if depth is not None and door.count(depth, "espa: depth") != len(schedule) - 1:
            raise ValueError(f"espa: depth={depth} conflicts with the {len(schedule) - 1} layers of gammas")
    if require_nonnegative:
        _refuse_rising(schedule, length)
    if not causal:
        return _symmetric(schedule, length, require_nonnegative)
    return AttentionStack(_layers(length, schedule[:-1], schedule[1:]))


def _falling_schedule(depth: int, gamma: float, gamma0: float, length: int, nonnegative: bool) -> np.ndarray:
    ends = check_gammas([gamma0, gamma])
    if nonnegative:
        _refuse_rising(ends, length)
    return espa_schedule(depth, gamma, gamma0)


def _refuse_rising(gammas: np.ndarray, length: int) -> None:
    for index in np.flatnonzero(gammas[1:] > gammas[:-1]):
        before, after = gammas[index : index + 2]
        entry = ""
        if length > 1:
            value = AttentionStack(_layers(2, gammas[[index]], gammas[[index + 1]]))[0].matrix()[1, 0]
            entry = f", so that attention entry (1, 0) would be {value:.12g}"
        raise ValueError(f"espa: layer {index + 1}: gamma rises from {before:g} to {after:g}{entry}; it must fall")


def _layers(length: int, before: np.ndarray, after: np.ndarray) -> Semiseparable:
    """The closed form of every layer, each coefficient without cancellation (theory: whiten, then colour)."""
    with np.errstate(invalid="ignore", over="ignore"):
        variance_before, variance_after = -np.expm1(-2 * before), -np.expm1(-2 * after)
        apart = before - after
        # e^{−after} − e^{−before}: the larger of the two times an expm1 of the distance.
        fall = np.where(after < before, -np.exp(-after) * np.expm1(-apart), np.exp(-before) * np.expm1(apart))
    ratio = np.sqrt(variance_after / variance_before)
    same = before == after
    step = np.where(same, 0.0, ratio * fall)
    # e^{−after} − ratio e^{−before}, two terms of one sign: e^{−after}(1 − ratio), with 1 − ratio from 1 − ratio².
    lost = fall * (np.exp(-after) + np.exp(-before)) / variance_before
    first = np.where(same, 0.0, np.exp(-after) * lost / (1 + ratio) + step)
    shape = (len(before), 1, length)
    diagonal, right = np.broadcast_to(ratio[:, None], shape[::2]).copy(), np.broadcast_to(step[:, None, None], shape)
    diagonal[:, 0] = 1.0
    right = right.copy()
    right[:, 0, 0] = first
    return Semiseparable(
        diagonal=diagonal,
        left=np.ones(shape),
        right=right,
        log_decay=-after[:, None],
        origin=Origin("espa", {"gamma_before": before, "gamma_after": after}),
    )


def _symmetric(schedule: np.ndarray, length: int, require_nonnegative: bool) -> AttentionStack:
    lag = np.abs(np.arange(length)[:, None] - np.arange(length)[None, :])
    with np.errstate(invalid="ignore"):
        kernels = np.where(lag == 0, 1.0, np.exp(-schedule[:, None, None] * lag))
    return signal_preserving(kernels, causal=False, require_nonnegative=require_nonnegative)
