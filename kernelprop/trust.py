"""Kernels that the package made carry their guarantee and skip the checks at the door."""

import weakref
from typing import Any

import numpy as np

_CERTIFIED: "weakref.WeakValueDictionary[int, np.ndarray]" = weakref.WeakValueDictionary()


def certify(array: np.ndarray) -> np.ndarray:
    """Make an array read-only and remember this very object as a valid kernel.

    A view is copied first: its base could still be written to.

    >>> is_certified(certify(np.eye(2)))
    True
    """
    array = array if array.flags.owndata else array.copy()
    array.flags.writeable = False
    _CERTIFIED[id(array)] = array
    return array


def is_certified(array: Any) -> bool:
    """Whether this very object is a certified kernel; anything computed from one is not.

    >>> is_certified(2 * certify(np.eye(2)))
    False
    """
    known = _CERTIFIED.get(id(array))
    return known is not None and known is array and not known.flags.writeable
