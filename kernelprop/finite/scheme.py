"""Which distribution each weight of the network has."""

from collections.abc import Mapping
from typing import Any

from kernelprop.finite.families import Family, Gaussian, Truncated, Xavier, Zero
from kernelprop.finite.orthogonal import Orthogonal

MATRICES = ("query", "key", "value", "output", "mlp_in", "mlp_gate", "mlp_out")

FAMILIES: dict[str, Family] = {
    "gaussian": Gaussian(),
    "orthogonal": Orthogonal(),
    "truncated": Truncated(),
    "xavier": Xavier(),
    "zero": Zero(),
}


def weight_families(weights: Any, random_queries: bool) -> dict[str, Family]:
    """Return the distribution of each matrix by name.

    Args:
        weights: a name (``"gaussian"``, ``"orthogonal"``, ``"truncated"``, ``"xavier"``, ``"zero"``) or a `Family`
            for all, or a mapping from names of matrices to either, Gaussian where it is silent.
        random_queries: whether queries are drawn like the rest; otherwise they are zero unless named.

    Raises:
        ValueError: for unknown names.

    >>> weight_families({"value": "orthogonal"}, random_queries=False)["query"]
    Zero()
    """
    if isinstance(weights, Mapping):
        unknown = [name for name in weights if name not in MATRICES]
        if unknown:
            raise ValueError(f"weights: there is no weight {unknown[0]!r}; the names are {', '.join(MATRICES)}")
        named = {name: _family(value) for name, value in weights.items()}
        common: Family = Gaussian()
    else:
        named, common = {}, _family(weights)
    families = dict.fromkeys(MATRICES, common)
    if not random_queries:
        families["query"] = Zero()
    return families | named


def _family(value: Any) -> Family:
    if isinstance(value, Family):
        return value
    if not isinstance(value, str) or value not in FAMILIES:
        raise ValueError(f"weights: {value!r} is unknown; use {', '.join(FAMILIES)}, or a distribution")
    return FAMILIES[value]
