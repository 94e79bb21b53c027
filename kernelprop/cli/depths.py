"""Which depths are kept, printed and drawn."""

import itertools
from typing import Literal

# What "all" may take on disk before the command keeps only the depths that it prints.
PLENTY = 256 * 2**20
ROWS = 13


def parse_depths(text: str, option: str) -> list[int]:
    """Read ``0,10,20``.

    Raises:
        ValueError: for anything but whole numbers.

    >>> parse_depths("0, 10,20", "--show")
    [0, 10, 20]
    """
    try:
        return [int(word) for word in text.split(",")]
    except ValueError:
        raise ValueError(f"{option}: {text!r} is no list of depths such as 0,10,20") from None


def readable_selection(layers: int) -> list[int]:
    """Return all depths of a shallow network, else 0, 1, 2, 5, 10, 20, … and the last.

    >>> readable_selection(100)
    [0, 1, 2, 5, 10, 20, 50, 100]
    """
    if layers < ROWS:
        return list(range(layers + 1))
    steps = (factor * 10**power for power in itertools.count() for factor in (1, 2, 5))
    return [0, *itertools.takewhile(lambda depth: depth < layers, steps), layers]


def keep_of(text: str | None, shown: list[int], layers: int, kernel_bytes: int) -> Literal["all", "last"] | list[int]:
    """Read ``--keep``; by default all depths, or those that are shown where all are too large to write."""
    if text is None:
        return "all" if (layers + 1) * kernel_bytes <= PLENTY else shown
    if text == "all" or text == "last":  # a type checker narrows this form alone
        return text
    return parse_depths(text, "--keep")
