"""Input kernels: what enters the first layer, as float64 arrays ``(T, T)`` that are valid by construction.

They are read-only and pass the door without a test; arrays computed from them are ordinary arrays again.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from kernelprop import door
from kernelprop.trust import certify


def identity(length: int) -> np.ndarray:
    """Return ``I``: positions without correlation.

    >>> identity(2)
    array([[1., 0.],
           [0., 1.]])
    """
    return certify(np.eye(door.count(length, "length")))


def equicorrelated(length: int, rho: float) -> np.ndarray:
    """Return ``(1 - ρ) I + ρ 11'``: every pair of positions has correlation ``ρ``.

    Raises:
        ValueError: unless ``-1/(T-1) < ρ <= 1``, outside which it has an eigenvalue that is not positive.

    >>> equicorrelated(2, 0.5)
    array([[1. , 0.5],
           [0.5, 1. ]])
    """
    length = door.count(length, "length")
    return certify(_equicorrelated(length, door.real_number(rho, "rho"), "rho", "positions"))


def exponential(length: int, gamma: float) -> np.ndarray:
    """Return ``S_ij = exp(-γ |i - j|)``: correlation that falls with distance (the kernels of E-SPA).

    ``γ = inf`` is the identity, ``γ = 0`` is ``11'``.

    Raises:
        ValueError: for a negative ``γ``.

    >>> exponential(3, float("inf"))
    array([[1., 0., 0.],
           [0., 1., 0.],
           [0., 0., 1.]])
    """
    length = door.count(length, "length")
    gamma = door.real_number(gamma, "gamma", allow_infinite=True)
    if gamma < 0:
        raise ValueError(f"gamma: {gamma:g} is negative; it must be at least 0 (infinity is allowed)")
    # Distance 0 is set apart: there inf · 0 would be NaN.
    decay = np.append(1.0, np.exp(-gamma * np.arange(1, length)))
    return certify(_toeplitz(decay))


def from_tokens(tokens: Sequence[Any] | np.ndarray, correlation: float = 0.0) -> np.ndarray:
    """Return the kernel of a sequence of tokens under random embeddings of unit variance.

    Repeated tokens have correlation 1, different ones ``correlation``.

    Args:
        tokens: token ids or strings, one a position.
        correlation: between different tokens, ``-1/(n-1) < correlation <= 1`` for ``n`` different ones.

    Raises:
        ValueError: for no tokens, tokens that are neither whole numbers nor text, or a correlation outside.

    >>> from_tokens(["to", "be", "to"])
    array([[1., 0., 1.],
           [0., 1., 0.],
           [1., 0., 1.]])
    """
    ids = _tokens(tokens)
    different, place = np.unique(ids, return_inverse=True)
    number = door.real_number(correlation, "correlation")
    return certify(_equicorrelated(len(different), number, "correlation", "different tokens")[np.ix_(place, place)])


def from_embedding(embedding: Any, tokens: Sequence[int] | np.ndarray) -> np.ndarray:
    """Return ``X X'/d`` for the rows ``X`` of an embedding matrix ``(V, d)`` that the token ids pick.

    Raises:
        ValueError: naming the position of an id outside ``0…V-1``.

    >>> from_embedding([[2.0, 0.0], [1.0, 1.0]], [0, 1, 1])
    array([[2., 1., 1.],
           [1., 1., 1.],
           [1., 1., 1.]])
    """
    matrix = _matrix(embedding, "embedding", "(V, d)")
    ids = _tokens(tokens)
    if ids.dtype.kind not in "iu":
        raise ValueError(f"tokens: ids are wanted (whole numbers), {ids.dtype} was given")
    bad = (ids < 0) | (ids >= len(matrix))
    if bad.any():
        i = int(bad.argmax())
        raise ValueError(f"tokens: position {i}: id {ids[i]} is outside 0 to {len(matrix) - 1}")
    # Each different token once: repeated ones then agree to the last bit.
    different, place = np.unique(ids, return_inverse=True)
    return certify(_gram(matrix[different])[np.ix_(place, place)])


def from_inputs(inputs: Any) -> np.ndarray:
    """Return ``X X'/d`` for inputs ``X`` of shape ``(T, d)``, in float64: mean squares, not sums of squares.

    >>> from_inputs(np.ones((2, 4)))
    array([[1., 1.],
           [1., 1.]])
    """
    return certify(_gram(_matrix(inputs, "inputs", "(T, d)")))


def positional_sinusoidal(length: int, width: int, amplitude: float = 1.0, base: float = 10_000.0) -> np.ndarray:
    """Return the kernel of sinusoidal positions, ``a² (1/d) Σ_k cos(base^(-2k/d) (i - j))``, to be added.

    It is ``P P'/d`` for ``P[i, 2k] = a sin(i base^(-2k/d))``, ``P[i, 2k+1]`` its cosine; the diagonal is
    ``a²/2``. With positions added to the embedding, the input kernel is ``Σ + Σ_pos``.

    Args:
        length: ``T``.
        width: ``d``, even.
        amplitude: ``a``.
        base: the slowest angular frequency is about ``1/base``.

    >>> positional_sinusoidal(2, 2).round(4)
    array([[0.5   , 0.2702],
           [0.2702, 0.5   ]])
    """
    length, width = door.count(length, "length"), door.count(width, "width", least=2)
    if width % 2:
        raise ValueError(f"width: {width} is odd; sines and cosines come in pairs")
    amplitude, base = door.real_number(amplitude, "amplitude"), door.real_number(base, "base")
    if base <= 0:
        raise ValueError(f"base: {base:g} is not positive")
    frequencies = base ** (-2 * np.arange(width // 2) / width)
    by_distance = np.cos(np.outer(np.arange(length), frequencies)).sum(1) * (amplitude**2 / width)
    return certify(_toeplitz(by_distance))


def positional_learned(length: int, variance: float = 1.0) -> np.ndarray:
    """Return ``variance · I``, to be added: learned positions are drawn independently at initialisation.

    >>> positional_learned(2, 0.25)
    array([[0.25, 0.  ],
           [0.  , 0.25]])
    """
    variance = door.real_number(variance, "variance")
    if variance < 0:
        raise ValueError(f"variance: {variance:g} is negative")
    return certify(variance * np.eye(door.count(length, "length")))


def _equicorrelated(number: int, rho: float, name: str, of_what: str) -> np.ndarray:
    bound = -1 / (number - 1) if number > 1 else -np.inf
    if not bound < rho <= 1:
        limit = f"between -1/{number - 1} = {bound:.12g} (excluded) and" if number > 1 else "at most"
        raise ValueError(f"{name}: {rho:.12g} for {number} {of_what}; it must be {limit} 1")
    kernel = np.full((number, number), rho)
    np.fill_diagonal(kernel, 1.0)
    return kernel


def _toeplitz(by_distance: np.ndarray) -> np.ndarray:
    """Return ``S_ij = by_distance[|i - j|]`` without a matrix of indices."""
    both_sides = np.concatenate([by_distance[:0:-1], by_distance])
    return np.lib.stride_tricks.sliding_window_view(both_sides, len(by_distance))[::-1].copy()


def _gram(matrix: np.ndarray) -> np.ndarray:
    return matrix @ matrix.T / matrix.shape[1]


def _matrix(value: Any, name: str, shape: str) -> np.ndarray:
    matrix = door.real_array(value, name).astype(np.float64)
    if matrix.ndim != 2 or 0 in matrix.shape:
        raise ValueError(f"{name}: shape {matrix.shape} is not {shape}")
    return matrix


def _tokens(tokens: Sequence[Any] | np.ndarray) -> np.ndarray:
    ids = np.asarray(tokens)
    if ids.ndim != 1 or not len(ids):
        raise ValueError(f"tokens: shape {ids.shape} is not (T,)")
    if ids.dtype.kind not in "iuUS":
        raise ValueError(f"tokens: whole numbers or text are wanted, {ids.dtype} was given")
    return ids
