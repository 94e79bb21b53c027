"""Correlation matrices as bytes that the page's script paints."""

import base64
from typing import Any

import numpy as np

from kernelprop.results import Evolution

# Larger matrices are shown at as many positions, evenly spaced, first and last among them.
MOST = 64
UNDEFINED = 255


def heatmap_data(evolution: Evolution) -> dict[str, Any]:
    """The correlations of all kept kernels: a byte for each, 0 for −1, 127 for 0, 254 for 1, 255 for undefined.

    >>> import kernelprop as kp
    >>> data = heatmap_data(kp.propagate(kp.Transformer(kp.uniform(2)), kp.kernels.identity(2)))
    >>> list(base64.b64decode(data["bytes"]))
    [254, 127, 127, 254, 254, 254, 254, 254]
    """
    chosen = shown_positions(evolution.length)
    kernels = np.asarray(evolution.kernels, np.float64)[:, chosen][:, :, chosen]
    diagonal = np.asarray(np.diagonal(kernels, axis1=-2, axis2=-1))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        roots = np.sqrt(diagonal)
        correlation = kernels / roots[:, :, None] / roots[:, None, :]
    levels = np.round(127 + 127 * np.clip(correlation, -1.0, 1.0))
    pixels = np.where(np.isfinite(correlation), levels, UNDEFINED).astype(np.uint8)
    return {
        "depths": evolution.depth.tolist(),
        "size": len(chosen),
        "bytes": base64.b64encode(pixels.tobytes()).decode("ascii"),
    }


def shown_positions(length: int) -> np.ndarray:
    """The positions that a heat map shows.

    >>> shown_positions(3)
    array([0, 1, 2])
    >>> shown_positions(1000)[[0, -1]]
    array([  0, 999])
    """
    return np.unique(np.round(np.linspace(0, length - 1, min(length, MOST))).astype(int))


def kept_depths(layers: int, most: int = 25) -> list[int]:
    """The depths whose kernels the page shows: all of a shallow network, else some, evenly spaced.

    >>> kept_depths(3), len(kept_depths(1000))
    ([0, 1, 2, 3], 25)
    """
    return [int(depth) for depth in np.unique(np.round(np.linspace(0, layers, min(layers + 1, most))))]
