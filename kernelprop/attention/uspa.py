"""U-SPA: causal attention that takes one uniform-correlation kernel to the next (He et al. 2023, section 4)."""

from typing import Any

import numpy as np

from kernelprop import door
from kernelprop.attention.mixture import Mixture
from kernelprop.attention.schedules import check_rhos, uspa_schedule
from kernelprop.attention.semiseparable import Origin, Semiseparable
from kernelprop.attention.stack import AttentionStack
from kernelprop.attention.uniform import Uniform


def uspa(
    length: int,
    depth: int | None = None,
    rho: float = 0.8,
    rho0: float = 0.0,
    causal: bool = True,
    *,
    rhos: Any = None,
    require_nonnegative: bool = True,
) -> AttentionStack:
    """Attention whose layer ``l`` takes ``(1−ρ_{l−1})I + ρ_{l−1}11ᵀ`` to ``(1−ρ_l)I + ρ_l 11ᵀ``.

    ``A_l = F_l F_{l−1}⁻¹``, ``F`` the Cholesky factor (its symmetric square root if not causal: then the layer
    is a mixture of the identity and uniform attention). Both act in ``O(T²)`` a kernel.

    Args:
        length: the number of positions ``T``.
        depth: the number of layers, 1 if not given.
        rho: the last layer's correlation ``ρ_L``.
        rho0: the input's; 0 is the identity kernel.
        causal: whether a position attends only to itself and those before it.
        rhos: a whole schedule ``ρ_0 … ρ_L`` instead of the three above.
        require_nonnegative: refuse a schedule that a softmax can't realise. With False, a falling ρ gives the
            plain linear operator, negative entries and all.

    Raises:
        ValueError: for ρ outside [0, 1), and for a falling one, naming the first bad layer and entry.

    >>> uspa(3, rhos=[0.2, 0.6]).as_matrix()[0].round(6)
    array([[1.      , 0.      , 0.      ],
           [0.436701, 0.816497, 0.      ],
           [0.410821, 0.178245, 0.767649]])
    """
    length = door.count(length, "uspa: length")
    if rhos is None:
        schedule = check_rhos([rho0, rho])
        if require_nonnegative:
            _refuse_falling(schedule, length)
        schedule = uspa_schedule(depth or 1, rho, rho0)
    else:
        schedule = check_rhos(rhos)
        if depth is not None and depth != len(schedule) - 1:
            raise ValueError(f"uspa: depth={depth} conflicts with the {len(schedule) - 1} layers of rhos")
    if require_nonnegative:
        _refuse_falling(schedule, length)
    if not causal:
        return _symmetric(schedule, length)
    return AttentionStack(_layers(length, schedule[:-1], schedule[1:]))


def _refuse_falling(rhos: np.ndarray, length: int) -> None:
    for index in np.flatnonzero(rhos[1:] < rhos[:-1]):
        before, after = rhos[index : index + 2]
        entry = ""
        if length > 1:
            value = AttentionStack(_layers(2, rhos[[index]], rhos[[index + 1]]))[0].matrix()[1, 0]
            entry = f", so that attention entry (1, 0) would be {value:.12g}"
        raise ValueError(f"uspa: layer {index + 1}: rho falls from {before:g} to {after:g}{entry}; it must rise")


def _cholesky(length: int, rho: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The factor's diagonal ``F_mm`` and the constant column ``F_im``, ``i > m``, below it; ``rho (L, 1)``."""
    m = np.arange(length)
    before, upto = 1 + (m - 1) * rho, 1 + m * rho
    return np.sqrt((1 - rho) * upto / before), rho * np.sqrt((1 - rho) / (before * upto))


def _layers(length: int, before: np.ndarray, after: np.ndarray) -> Semiseparable:
    """Every layer as a semiseparable matrix of rank 2, each coefficient of one sign under the right ordering.

    ``A_ij = G_j − H_i`` below the diagonal, and ``H`` rises, so ``A_ij = A_{T−1,j} + (H_{T−1} − H_i)``.
    """
    m = np.arange(length)
    rho = before[:, None]
    whitened, _ = _cholesky(length, rho)
    coloured, column = _cholesky(length, after[:, None])
    mean_share = rho / np.sqrt((1 - rho) * (1 + m * rho) * (1 + (m - 1) * rho))
    # H_i = F'_ii u_i + Σ_{m<i} f'_m u_m and G_j = f'_j/F_jj + Σ_{m≤j} f'_m u_m with u = mean_share.
    products = column * mean_share
    summed = np.cumsum(products, axis=1) - products
    fall = coloured * mean_share + summed
    last = column / whitened + summed + products - fall[:, -1:]
    drop = fall[:, -1:] - fall
    same = (before == after)[:, None]
    last, drop = np.where(same, 0.0, last), np.where(same, 0.0, drop)
    ones = np.ones_like(drop)
    return Semiseparable(
        diagonal=coloured / whitened,
        left=np.stack([ones, drop], axis=1),
        right=np.stack([last, ones], axis=1),
        log_decay=np.zeros((len(before), 2)),
        origin=Origin("uspa", {"rho_before": before, "rho_after": after}),
    )


def _symmetric(schedule: np.ndarray, length: int) -> AttentionStack:
    """Symmetric square roots of uniform-correlation kernels are themselves of that form."""
    apart = np.sqrt((1 - schedule[1:]) / (1 - schedule[:-1]))
    common = np.sqrt((1 + (length - 1) * schedule[1:]) / (1 + (length - 1) * schedule[:-1]))
    return AttentionStack(Mixture(apart, common - apart, Uniform(length), value_skip=False))
