"""Numbers in words and equations: one for all layers, or a symbol with the layers' numbers listed beside."""

from collections.abc import Iterable
from typing import Any

import numpy as np

Term = tuple[str, Any, str]


def numeral(value: Any) -> str:
    """A number to twelve digits, without zeros that say nothing.

    >>> numeral(0.1 * 3), numeral(4.0), numeral(np.inf)
    ('0.3', '4', 'inf')
    """
    return format(float(value), ".12g")


def is_one(values: Any) -> bool:
    """Whether all layers share one number."""
    array = np.asarray(values)
    return array.ndim == 0 or bool(np.all(array == array.flat[0]))


def first(values: Any) -> float:
    """The number of the first layer."""
    return float(np.asarray(values).flat[0])


def factor(symbol: str, values: Any, power: int = 1) -> str:
    """A factor to a power: its number, or the symbol where layers differ; nothing for 1.

    >>> factor("β₁", 0.5, 2), factor("β₁", [0.5, 0.6], 2), factor("β₁", 1.0)
    ('0.25', 'β₁²', '')
    >>> weighted_sum([("α", 1.0, "X"), ("β", -1.0, "Y")])
    'X - Y'
    """
    if not is_one(values):
        return symbol + ("²" if power == 2 else "")
    value = first(values) ** power
    return "" if value == 1 else "-" if value == -1 else numeral(value)


def product(*factors: str) -> str:
    """Factors side by side, the numbers among them multiplied."""
    return " ".join(one for one in factors if one) or "1"


def weighted_sum(terms: Iterable[Term], power: int = 1) -> str:
    """``0.8 X + 0.6 Attn(X)`` from symbols, numbers and things; terms of weight 0 are left out.

    >>> weighted_sum([("α", 0.0, "X"), ("β", 1.0, "Y")]), weighted_sum([("α", 0.5, "X"), ("β", [1, 2], "Y")], 2)
    ('Y', '0.25 X + β² Y')
    """
    kept = [(s, v, thing) for s, v, thing in terms if not (is_one(v) and first(v) == 0)]
    words = [product(factor(s, v, power), thing) if (s, v) else thing for s, v, thing in kept]
    return (" + ".join(words) or "0").replace("+ - ", "- ").replace("+ -", "- ")


def listed(values: Any) -> str:
    """All numbers to six digits; equal neighbours once, with their count.

    >>> listed([1.0, 0.5, 0.5, 0.25])
    '1, 0.5 (2 times), 0.25'
    """
    numbers = [format(float(value), ".6g") for value in np.asarray(values).ravel()]
    runs: list[list[Any]] = []
    for number in numbers:
        if runs and runs[-1][0] == number:
            runs[-1][1] += 1
        else:
            runs.append([number, 1])
    return ", ".join(number if count == 1 else f"{number} ({count} times)" for number, count in runs)
