"""How far a network is from each limit that decides whether something is ill."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelprop.balance import ROUNDING
from kernelprop.diagnosis.collapse import CORRELATION, RESIDUAL, collapsed_since, unless_rounding
from kernelprop.diagnosis.diagonal import FACTOR, diagonal_factors
from kernelprop.diagnosis.stream import Stream
from kernelprop.diagnosis.trainability import SPREAD, gradient_spread, query_over_value
from kernelprop.results import Evolution, GradientNorms

# What the other side of a relation is.
OPPOSITE = {"<": ">=", ">": "<=", ">=": "<"}


@dataclass(frozen=True)
class Margin:
    """A number that was measured, and the limit by which it is judged.

    Attributes:
        kind: the finding that it decides, as of `Finding`.
        name: what was measured.
        value: how much.
        healthy: the relation to the limit that is healthy, ``"<"``, ``">"`` or ``">="``.
        limit: the limit.
    """

    kind: str
    name: str
    value: float
    healthy: str
    limit: float

    @property
    def ill(self) -> bool:
        """Whether the number is on the wrong side of its limit."""
        return not {"<": self.value < self.limit, ">": self.value > self.limit, ">=": self.value >= self.limit}[
            self.healthy
        ]

    @property
    def words(self) -> str:
        """The number beside its limit, in as many digits as tell the two apart.

        >>> Margin("collapse", "rank residual", 0.099996, ">", 0.1).words
        'rank residual 0.099996 <= 0.1 (ill)'
        """
        relation, mark = (OPPOSITE[self.healthy], " (ill)") if self.ill else (self.healthy, "")
        return f"{self.name} {_digits(self.value, self.limit)} {relation} {self.limit:.4g}{mark}"

    def as_data(self) -> dict[str, Any]:
        """The margin as JSON takes it."""
        return {
            "kind": self.kind,
            "name": self.name,
            "value": self.value,
            "healthy": self.healthy,
            "limit": self.limit,
            "ill": self.ill,
        }


def margins(evolution: Evolution, stream: Stream, norms: GradientNorms) -> Iterator[Margin]:
    """Every number that decides about a network, beside its limit; what is undefined has none.

    Args:
        evolution: of one kernel.
        stream: the same one's diagonal, up to a final norm.
        norms: the gradient norms.
    """
    for margin in _all(evolution, stream, norms):
        if margin.value == margin.value:
            yield margin


def _all(evolution: Evolution, stream: Stream, norms: GradientNorms) -> Iterator[Margin]:
    # A kernel that comes collapsed, and a single position, are not judged.
    if evolution.length > 1 and collapsed_since(evolution.mean_correlation, evolution.rank_residual) != 0:
        correlation = unless_rounding(float(evolution.mean_correlation[-1]), evolution.kernels.dtype.name)
        yield Margin("collapse", "mean correlation", correlation, "<", CORRELATION)
        yield Margin("collapse", "rank residual", float(evolution.rank_residual[-1]), ">", RESIDUAL)
    for kind, factor in diagonal_factors(stream).items():
        yield Margin(kind, f"{kind} of the diagonal", factor, "<", FACTOR)
    yield Margin("queries", "least query over value gradient", query_over_value(norms), ">=", ROUNDING["bfloat16"])
    finite = norms.value is None or np.all(np.isfinite(norms.value))
    spread = gradient_spread(norms) if finite else float("inf")
    yield Margin("gradients", "value gradients, largest over least", spread, "<", SPREAD)


def _digits(value: float, limit: float) -> str:
    """Four digits, more where fewer would put the number onto or across its limit."""
    if value == float("inf"):
        return "∞"
    texts = [f"{value:.{digits}g}" for digits in range(4, 18)]
    return next(text for text in texts if np.sign(float(text) - limit) == np.sign(value - limit))
