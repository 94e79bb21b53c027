"""Which prescribed kernel a given one is nearest to: the γ_0 of E-SPA, the ρ_0 of U-SPA.

The distance is ``‖Σ − K‖_F / ‖Σ‖_F``, with ``Σ`` scaled to a mean diagonal of 1. Both families of ``K`` are
constant along diagonals, so ``Σ`` enters through its mean at every lag alone.
"""

import numpy as np

from kernelprop import door

# Beyond it e^{−γ} is below the rounding of 1: the kernel is the identity.
LARGEST_GAMMA = 40.0
GRID = 512


def nearest_gamma(kernel: np.ndarray, least: float) -> float:
    """Return the ``γ ≥ least`` whose ``e^{−γ|i−j|}`` is nearest to a kernel of unit mean diagonal; infinity is I.

    The distance can have several minima in γ: its slope is read on a grid, every change of sign is refined to
    rounding, and the best of them and the two ends is taken.

    >>> nearest_gamma(np.exp(-0.3 * np.abs(np.arange(8)[:, None] - np.arange(8))), 0.005)
    0.3
    """
    from scipy.optimize import root_scalar

    counts, means = _by_lag(kernel)
    lags = np.arange(1, len(counts) + 1)

    def slope(gamma: float) -> float:
        decay = np.exp(-gamma * lags)
        return float(np.sum(counts * lags * decay * (means - decay)))

    grid = np.geomspace(least, max(LARGEST_GAMMA, least), GRID)
    slopes = [slope(gamma) for gamma in grid]
    minima = [
        root_scalar(slope, bracket=(grid[i], grid[i + 1]), method="brentq", xtol=1e-300, rtol=1e-15).root
        for i in range(GRID - 1)
        if slopes[i] < 0 < slopes[i + 1]
    ]
    exact = [float(gamma) for gamma, value in zip(grid, slopes, strict=True) if value == 0 and gamma < LARGEST_GAMMA]
    candidates = [*minima, *exact, float(least), np.inf]
    return min(candidates, key=lambda gamma: float(np.sum(counts * (means - np.exp(-gamma * lags)) ** 2)))


def nearest_rho(kernel: np.ndarray, most: float) -> float:
    """Return the ``ρ`` in ``[0, most]`` whose ``(1−ρ)I + ρ11ᵀ`` is nearest to a kernel of unit mean diagonal.

    It is the mean of the entries off the diagonal, moved into the interval.

    >>> nearest_rho(np.array([[1.0, 0.3], [0.3, 1.0]]), 0.8)
    0.3
    """
    counts, means = _by_lag(kernel)
    if not len(counts):
        return 0.0
    return float(np.clip(np.sum(counts * means) / np.sum(counts), 0.0, most))


def relative_distance(kernel: np.ndarray, prescribed: np.ndarray) -> float:
    """Return ``‖Σ − K‖_F / ‖Σ‖_F``.

    >>> relative_distance(np.ones((2, 2)), np.eye(2)) ** 2
    0.5000000000000001
    """
    return float(np.linalg.norm(kernel - prescribed) / np.linalg.norm(kernel))


def unit_mean_diagonal(kernel: np.ndarray, name: str) -> tuple[np.ndarray, float]:
    """Divide a kernel by the mean of its diagonal; return it with the factor it was multiplied by.

    Raises:
        ValueError: for the zero kernel.
    """
    mean = float(np.mean(np.diagonal(kernel)))
    if mean <= 0:
        raise ValueError(f"{name}: the diagonal is zero, so that the kernel can't be scaled to a mean diagonal of 1")
    return kernel / mean, 1 / mean


def one_kernel(value: object, name: str) -> np.ndarray:
    """Check one kernel ``(T, T)`` at the door; float64."""
    kernel = door.kernel(value, name)
    if kernel.ndim != 2:
        raise ValueError(f"{name}: one kernel (T, T) is wanted, shape {kernel.shape} was given")
    return kernel.astype(np.float64)


def _by_lag(kernel: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """How many entries each lag ``1 … T−1`` has on both sides, and their mean."""
    length = len(kernel)
    counts = 2.0 * (length - np.arange(1, length))
    means = np.array([np.mean(np.diagonal(kernel, lag)) for lag in range(1, length)])
    return counts, means
