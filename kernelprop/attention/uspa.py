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
        ValueError: for ρ outside [0, 1), and for a falling one, naming the first bad layer and entry; for a depth
            below 1.

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
        schedule = uspa_schedule(1 if depth is None else depth, rho, rho0)
    else:
        schedule = check_rhos(rhos)
        if depth is not None and door.count(depth, "uspa: depth") != len(schedule) - 1:
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


def _layers(length: int, before: np.ndarray, after: np.ndarray) -> Semiseparable:
    """Every layer as a semiseparable matrix of rank 2, each coefficient a sum of terms of one sign.

    With ``r, s`` the correlations before and after, ``D_m = 1 + mr``, ``D'_m = 1 + ms``, ``w_m = sqrt(D'_m/D_m)`` and
    ``k_m = w_{−1}/sqrt(D_m D'_m)``, whitening and colouring give ``A_ii = w_{−1} w_i/w_{i−1}``, and below it
    ``A_ij − A_{i+1,j} = r k_i (w_{i+1} − w_{i−1})`` and ``A_ij − A_{i,j+1} = s k_j (1/w_{j−1} − 1/w_{j+1})``.
    So ``A_ij = A_{T−1,j} + (A_ij − A_{T−1,j})``, where the bracket depends on the row alone.
    """
    r, s = before[:, None], after[:, None]
    m = np.arange(-1, length)
    old, new = 1 + m * r, 1 + m * s
    w = np.sqrt(new / old)
    lower, upper = w[:, :-2], w[:, 2:]
    # The difference of the squares of w over their sum: the one thing subtracted is s − r, which is exact near 1.
    rise = 2 * (s - r) / (old[:, :-2] * old[:, 2:] * (lower + upper))
    step = rise * w[:, :1] / (old[:, 1:-1] * w[:, 1:-1])
    down, along = r * step, s * step / (lower * upper)
    nothing = np.zeros_like(r)
    drop = np.concatenate([_sums_from(down), nothing], axis=1)
    # A_{T−1,j} is A_{T−1,T−2} and the steps from j to T − 2; there is none of these where T = 1.
    corner = _beside_diagonal(r, s, np.arange(length - 1)[-1:])
    last = np.concatenate([_sums_from(np.concatenate([along[:, :-1], corner], axis=1)), nothing], axis=1)
    ones = np.ones_like(drop)
    return Semiseparable(
        diagonal=w[:, :1] * w[:, 1:] / w[:, :-1],
        left=np.stack([ones, drop], axis=1),
        right=np.stack([last, ones], axis=1),
        log_decay=np.zeros((len(before), 2)),
        origin=Origin("uspa", {"rho_before": before, "rho_after": after}),
    )


def _beside_diagonal(r: np.ndarray, s: np.ndarray, j: np.ndarray) -> np.ndarray:
    """``A_{j+1,j} = k_j (s/w_{j−1} − r w_{j+1})``, this too as the difference of the squares over the sum.

    The squares differ by ``(s − r)(sD_j + rD'_j)/(D'_{j−1} D_{j+1})``.
    """
    larger = np.maximum(r, s)
    # Apart from s − r only the ratio of r and s matters, and tiny ones don't underflow; 1 : 1 where both are zero.
    share_r, share_s = (np.divide(rho, larger, out=np.ones_like(rho), where=larger > 0) for rho in (r, s))
    (old_lower, old, old_upper), (new_lower, new, new_upper) = (
        [1 + (j + k) * rho for k in (-1, 0, 1)] for rho in (r, s)
    )
    difference = (s - r) * (share_s * old + share_r * new) / (new_lower * old_upper)
    total = share_s * np.sqrt(old_lower / new_lower) + share_r * np.sqrt(new_upper / old_upper)
    return np.sqrt((1 - s) / ((1 - r) * old * new)) * difference / total


def _sums_from(terms: np.ndarray) -> np.ndarray:
    """``Σ_{m ≥ i} terms_m`` along the positions."""
    return np.cumsum(terms[:, ::-1], axis=1)[:, ::-1]


def _symmetric(schedule: np.ndarray, length: int) -> AttentionStack:
    """Symmetric square roots of uniform-correlation kernels are themselves of that form."""
    before, after = schedule[:-1], schedule[1:]
    upto = 1 + (length - 1) * before
    apart = np.sqrt((1 - after) / (1 - before))
    common = np.sqrt((1 + (length - 1) * after) / upto)
    # common − apart, as the difference of their squares over their sum.
    mean_share = length * (after - before) / (upto * (1 - before) * (apart + common))
    return AttentionStack(Mixture(apart, mean_share, Uniform(length), value_skip=False))
