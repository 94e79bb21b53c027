"""Cotangent kernels: what a loss sends back into the last layer, ``d·G_ij = E⟨g_i, g_j⟩``, as arrays ``(T, T)``.

``g_i`` is the gradient of the loss by row ``i`` of the network's output. They are read-only and pass the door
without a test; arrays computed from them are ordinary arrays again.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from kernelprop import door, trust
from kernelprop.kernels import identity

NAMES = ("all", "last", "mean")


def every_position(length: int) -> np.ndarray:
    """Return ``I``: a loss ``⟨R, X_L⟩`` with independent standard normal ``R``.

    >>> every_position(2)
    array([[1., 0.],
           [0., 1.]])
    """
    return identity(length)


def last_position(length: int) -> np.ndarray:
    """Return ``e eᵀ`` with ``e`` the last position: a loss ``⟨r, x_{T−1}⟩``.

    >>> last_position(2)
    array([[0., 0.],
           [0., 1.]])
    """
    kernel = np.zeros((door.count(length, "length"),) * 2)
    kernel[-1, -1] = 1
    return trust.certify(kernel)


def mean_pooled(length: int) -> np.ndarray:
    """Return ``11ᵀ/T²``: a loss ``⟨r, mean_i x_i⟩``.

    >>> mean_pooled(2)
    array([[0.25, 0.25],
           [0.25, 0.25]])
    """
    length = door.count(length, "length")
    return trust.certify(np.full((length, length), 1 / length**2))


def cross_entropy(targets: Sequence[int] | np.ndarray, vocabulary: int, width: int) -> np.ndarray:
    """Return the cotangent of the mean next-token cross-entropy at initialisation, for given targets.

    ``G_ij = (δ_{y_i y_j} − 1/V) / (T² d)``, the readout ``(d, V)`` of variance ``1/d`` still giving logits about 0
    (theory: a loss's cotangent).

    Args:
        targets: the token ids ``y``, ``(T,)``, among ``0 … V−1``.
        vocabulary: ``V``.
        width: ``d``.

    Raises:
        ValueError: for targets that are no ids below ``vocabulary``, with the position.

    >>> cross_entropy([3, 3], vocabulary=4, width=1)
    array([[0.1875, 0.1875],
           [0.1875, 0.1875]])
    """
    ids = np.asarray(targets)
    vocabulary, width = door.count(vocabulary, "vocabulary"), door.count(width, "width")
    if ids.ndim != 1 or not len(ids) or ids.dtype.kind not in "iu":
        raise ValueError(f"targets: token ids, one a position, are wanted; {ids.dtype} of shape {ids.shape} was given")
    for position in np.flatnonzero((ids < 0) | (ids >= vocabulary))[:1]:
        raise ValueError(f"targets: position {position}: id {ids[position]} is outside 0 to {vocabulary - 1}")
    same = (ids[:, None] == ids[None, :]).astype(np.float64)
    return trust.certify((same - 1 / vocabulary) / (len(ids) ** 2 * width))


def cross_entropy_uniform(length: int, vocabulary: int, width: int) -> np.ndarray:
    """Return the same for targets drawn uniformly and independently: ``G_ij = δ_ij (1 − 1/V) / (T² d)``.

    >>> cross_entropy_uniform(2, vocabulary=4, width=1)
    array([[0.1875, 0.    ],
           [0.    , 0.1875]])
    """
    length, width = door.count(length, "length"), door.count(width, "width")
    vocabulary = door.count(vocabulary, "vocabulary")
    return trust.certify(np.eye(length) * ((1 - 1 / vocabulary) / (length**2 * width)))


def resolve(cotangent: Any, length: int) -> np.ndarray:
    """Return the kernel that a name (``"all"``, ``"last"``, ``"mean"``), None or a ``(T, T)`` array stands for.

    Raises:
        ValueError: for an unknown name, another shape, and what is no kernel: not symmetric, or not positive.

    >>> resolve("mean", 1)
    array([[1.]])
    """
    if cotangent is None:
        return every_position(length)
    if isinstance(cotangent, str):
        if cotangent not in NAMES:
            raise ValueError(f"cotangent: {cotangent!r} is unknown; use 'all', 'last', 'mean' or a (T, T) kernel")
        return {"all": every_position, "last": last_position, "mean": mean_pooled}[cotangent](length)
    kernel = cotangent if trust.is_certified(cotangent) else door.kernel(cotangent, "cotangent")
    if kernel.shape != (length, length):
        raise ValueError(f"cotangent: shape {kernel.shape} does not fit {length} positions")
    return kernel
