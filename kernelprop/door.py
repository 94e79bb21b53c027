"""Checks at the door: what a user hands in is accepted whole or refused in one clear line.

Nothing is clamped or replaced. Positions, heads and array indices count from 0, layers from 1.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from kernelprop.precision import FLOATS

EIGENVALUE_TEST_LIMIT = 4096


def place(axes: Sequence[str], index: Sequence[int]) -> str:
    """Name an entry: ``place(("layer", "position"), (0, 2))`` is ``"layer 1, position 2"``."""
    numbers = (int(i) + 1 if axis == "layer" else int(i) for axis, i in zip(axes, index, strict=True))
    return ", ".join(f"{axis} {number}" for axis, number in zip(axes, numbers, strict=True))


def real_array(value: Any, name: str, *, allow_infinite: bool = False) -> np.ndarray:
    """Return a float32 or float64 numpy array; integers become float64.

    Raises:
        ValueError: for other types (float16, longdouble, complex, text) and for NaN or infinite entries.

    >>> real_array([1, 2], "gammas")
    array([1., 2.])
    >>> real_array([1.0, float("nan")], "gammas")
    Traceback (most recent call last):
    ValueError: gammas: entry (1,) is nan; every entry must be finite
    """
    try:
        array = np.asarray(value)
    except ValueError:
        raise ValueError(f"{name}: the rows have different lengths; an array of numbers is wanted") from None
    if array.dtype.kind in "iu":
        array = array.astype(np.float64)
    if array.dtype.name not in FLOATS:
        raise ValueError(f"{name}: dtype {array.dtype} is not supported; use float32 or float64{_cast(array.dtype)}")
    bad = np.isnan(array) if allow_infinite else ~np.isfinite(array)
    if bad.any():
        index = tuple(int(i) for i in np.argwhere(bad)[0])
        where = f"entry {index} is " if index else ""
        wanted = "no entry may be nan" if allow_infinite else "every entry must be finite"
        raise ValueError(f"{name}: {where}{array[index]}; {wanted}")
    return array


def _cast(dtype: np.dtype) -> str:
    """How a floating-point array of another width becomes one that is supported."""
    if not dtype.name.startswith(("float", "bfloat", "longdouble")):
        return ""
    return f', as of .astype("{"float32" if dtype.itemsize <= 2 else "float64"}")'


def real_number(value: Any, name: str, *, allow_infinite: bool = False) -> float:
    """Return one finite number as a float, or say what is wrong with it."""
    array = real_array(value, name, allow_infinite=allow_infinite)
    if array.ndim:
        raise ValueError(f"{name}: one number is wanted, shape {array.shape} was given")
    return float(array)


def count(value: Any, name: str, *, least: int = 1) -> int:
    """Return a whole number of at least ``least``."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise ValueError(f"{name}: a whole number is wanted, {value!r} was given")
    if value < least:
        raise ValueError(f"{name}: {value} is too small; it must be at least {least}")
    return int(value)


def kernel(value: Any, name: str = "kernel", *, eigenvalue_test: bool = True) -> np.ndarray:
    """Check kernel matrices ``(…, T, T)``: square, finite, symmetric, non-negative diagonal, |c| <= 1, no
    eigenvalue below rounding (up to T = 4096, and unless that test isn't wanted).

    Returns the array, float32 or float64, unchanged.

    Raises:
        ValueError: naming the first bad entry, or the smallest eigenvalue.

    >>> kernel([[1, 0.5], [0.4, 1]])
    Traceback (most recent call last):
    ValueError: kernel: not symmetric: entries (0, 1) and (1, 0) are 0.5 and 0.4, 0.1 apart
    """
    array = real_array(value, name)
    if array.ndim < 2 or array.shape[-1] != array.shape[-2] or not array.shape[-1]:
        raise ValueError(f"{name}: shape {array.shape} is not (..., T, T)")
    for batch in np.ndindex(*array.shape[:-2]):
        _one_kernel(array[batch], f"{name}{list(batch) if batch else ''}", eigenvalue_test)
    return array


def kernel_rounding(dtype: Any, length: int) -> float:
    """Return what floating point adds to a symmetric matrix with ``|c| <= 1``, relative: ``16 sqrt(T) eps``.

    Entries are sums of ``T`` products; a hundred layers ``S <- A S A'`` by hand stay within half of it.
    """
    return 16 * float(np.sqrt(length)) * float(np.finfo(dtype).eps)


def _one_kernel(matrix: np.ndarray, name: str, eigenvalue_test: bool) -> None:
    rounding = kernel_rounding(matrix.dtype, len(matrix))
    matrix = matrix.astype(np.float64, copy=False)
    diagonal = np.diagonal(matrix)
    if diagonal.min() < 0:
        i = int(diagonal.argmin())
        raise ValueError(f"{name}: position {i}: the diagonal is {diagonal[i]:.12g}; it can't be negative")
    scale = np.sqrt(diagonal)
    bound = scale[:, None] * scale
    gap = np.abs(matrix - matrix.T)
    bad = gap > rounding * np.maximum(bound, np.abs(matrix))
    if bad.any():
        i, j = (int(k) for k in np.unravel_index(np.where(bad, gap, 0).argmax(), gap.shape))
        raise ValueError(
            f"{name}: not symmetric: entries {(i, j)} and {(j, i)} are {matrix[i, j]:.12g} and "
            f"{matrix[j, i]:.12g}, {gap[i, j]:.12g} apart"
        )
    excess = np.abs(matrix) - bound * (1 + rounding)
    if (excess > 0).any():
        i, j = (int(k) for k in np.unravel_index(excess.argmax(), excess.shape))
        raise ValueError(
            f"{name}: positions {i} and {j}: entry {matrix[i, j]:.12g} exceeds "
            f"sqrt(q_{i} q_{j}) = {bound[i, j]:.12g}; a correlation lies in [-1, 1]"
        )
    if eigenvalue_test and len(matrix) <= EIGENVALUE_TEST_LIMIT:
        _no_negative_eigenvalue(matrix, name, rounding)


def _no_negative_eigenvalue(matrix: np.ndarray, name: str, rounding: float) -> None:
    # Eigenvalues feel all T² entries at once.
    tolerance = rounding * len(matrix) * max(float(np.diagonal(matrix).max()), 0.0)
    shifted = matrix + tolerance * np.eye(len(matrix))
    try:
        np.linalg.cholesky(shifted)
    except np.linalg.LinAlgError:
        # Cholesky is the cheap test; its failure at the edge is settled by the eigenvalues.
        smallest = float(np.linalg.eigvalsh(matrix)[0])
        if smallest < -tolerance:
            raise ValueError(f"{name}: not positive semidefinite: the smallest eigenvalue is {smallest:.13g}") from None
