"""Whether a benchmark's ratios are still what they were: the check of ``--check``."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ALLOWANCE = 0.2


def worse(stored: Mapping[str, float], found: Mapping[str, float], allowance: float = ALLOWANCE) -> list[str]:
    """One line for every ratio that is more than the allowance above the stored one; ratios count what is paid.

    A ratio that is stored and no longer measured is one, too; a new one is not.

    >>> worse({"dense / products": 1.5, "building": 1.0}, {"dense / products": 2.0, "building": 1.1})
    ['dense / products: 2 where 1.5 is stored, 33 % worse']
    """
    lines = []
    for name, before in stored.items():
        if name not in found:
            lines.append(f"{name}: {before:.3g} is stored, and it was not measured")
        elif not found[name] <= (1 + allowance) * before:
            share = 100 * (found[name] / before - 1)
            lines.append(f"{name}: {found[name]:.3g} where {before:.3g} is stored, {share:.0f} % worse")
    return lines


def told(path: Path, stored: Mapping[str, float], found: Mapping[str, float]) -> int:
    """Print what is worse than the stored results; the exit status: 1 if anything is."""
    lines = worse(stored, found)
    for line in lines:
        print(f"regression: {line}")
    if not lines:
        print(f"{len(stored)} ratios are within {ALLOWANCE:.0%} of those in {path}, or better")
    return 1 if lines else 0


def read(path: Path) -> dict[str, Any]:
    """Stored results.

    Raises:
        ValueError: where there are none to compare with.
    """
    if not path.exists():
        raise ValueError(f"{path}: no stored results to compare with; run without --check first")
    return json.loads(path.read_text())
