"""Whether the quadrature has converged at given variances: two rules are compared, and the tails looked at."""

import numpy as np
from numpy.polynomial import legendre

from kernelprop.activations.integrand import Integrand
from kernelprop.activations.quadrature import FINE, TAIL
from kernelprop.activations.sampling import sample

AGREEMENT = 1e-11
MOST = 64


def refuse_unresolved(f: Integrand, q: np.ndarray) -> None:
    """Check ``E f^2`` at these variances; of very many, at some spread over all, the largest included.

    Raises:
        ValueError: with the first variance at which two orders differ by more than 1e-11, or at which that
            part of the mass lies beyond eleven standard deviations.
    """
    q = np.sort(q)[:: -max(1, len(q) // MOST)]
    (value, tail), (other, _) = _moment(f, q, 16), _moment(f, q, 13)
    scale = np.where(value > 0, value, 1)
    with np.errstate(invalid="ignore"):
        difference, beyond = np.abs(value - other) / scale, tail / scale
    bad = ~((difference <= AGREEMENT) & (beyond <= AGREEMENT))
    if bad.any():
        at = int(np.argmax(bad))
        raise ValueError(
            f"activation: the quadrature has not converged at variance {q[at]:.6g}: two orders differ by "
            f"{difference[at]:.2g}, {beyond[at]:.2g} of the mass lies beyond {TAIL:.0f} standard deviations; "
            "declare kinks and narrow features with kinks=, or use a function that grows more slowly"
        )


def representable(f: Integrand, q: np.ndarray) -> np.ndarray:
    """Say at which variances ``E f^2`` is a number of the type: beyond its range nothing converges."""
    return np.isfinite(_moment(f, q, 16)[0])


def _moment(f: Integrand, q: np.ndarray, order: int) -> tuple[np.ndarray, np.ndarray]:
    """``E f^2`` and what of it lies in the tails."""
    edge = max(FINE)
    deviation = np.sqrt(np.maximum(q, np.finfo(float).tiny))[:, None]
    moved = np.clip(f.ends / deviation, -edge, edge)
    ends = np.sort(np.concatenate([moved, np.broadcast_to(FINE, (len(q), len(FINE)))], axis=1))
    points, weights = legendre.leggauss(order)
    half = np.diff(ends)[..., None] / 2
    x = (ends[:, :-1, None] + half * (1 + points)).reshape(len(q), -1)
    density = (half * weights).reshape(len(q), -1) * np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi)
    with np.errstate(invalid="ignore", over="ignore"):
        mass = density * sample(f.function, deviation * x) ** 2
    return mass.sum(axis=1), np.where(np.abs(x) > TAIL, mass, 0).sum(axis=1)
