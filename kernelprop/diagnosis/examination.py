"""One look at a network: forward, backward, and what is found in both."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelprop.architecture import Transformer
from kernelprop.balance import dead_queries
from kernelprop.diagnosis.collapse import collapse_findings, collapsed_since
from kernelprop.diagnosis.diagonal import diagonal_findings
from kernelprop.diagnosis.finding import Finding
from kernelprop.diagnosis.margins import Margin, margins
from kernelprop.diagnosis.stream import Stream, stream_of
from kernelprop.diagnosis.trainability import gradient_spread, query_over_value, trainability_findings
from kernelprop.gradients import gradient_norms
from kernelprop.infinite import propagate
from kernelprop.results import Evolution, GradientNorms


@dataclass(frozen=True, eq=False, kw_only=True)
class Examination:
    """A network, its kernel through the depth, its gradient norms, and the findings.

    Attributes:
        model: the network.
        evolution: of the input kernel through it.
        stream: the diagonal of the same, up to the last residual sum.
        norms: gradient norms at width 1.
        findings: what is ill, and what is worth knowing.
    """

    model: Transformer
    evolution: Evolution
    stream: Stream
    norms: GradientNorms
    findings: tuple[Finding, ...]

    @property
    def ills(self) -> frozenset[str]:
        """The kinds of findings that call for a remedy."""
        return frozenset(finding.kind for finding in self.findings if finding.ill)

    @property
    def margins(self) -> tuple[Margin, ...]:
        """The numbers that decide whether something is ill, each beside its limit."""
        return tuple(margins(self.evolution, self.stream, self.norms))

    def numbers(self) -> dict[str, Any]:
        """The numbers by which two networks are compared; None is undefined, ``inf`` infinite."""
        evolution, norms = self.evolution, self.norms
        with np.errstate(divide="ignore", invalid="ignore"):
            growth = self.stream.diagonal[-1] / self.stream.diagonal[0]
        low, high = (_finite(end(growth)) for end in (np.min, np.max))
        return {
            "collapsed_from_layer": collapsed_since(evolution.mean_correlation, evolution.rank_residual),
            "mean_correlation": float(evolution.mean_correlation[-1]),
            "mean_correlation_stderr": _last(evolution.mean_correlation_stderr),
            "rank_residual": float(evolution.rank_residual[-1]),
            "rank_residual_stderr": _last(evolution.rank_residual_stderr),
            "diagonal_factor_smallest": low,
            "diagonal_factor_largest": high,
            "dead_queries_bfloat16": dead_queries(norms, "bfloat16"),
            "query_over_value_smallest": _finite(query_over_value(norms)),
            "gradient_spread": _finite(gradient_spread(norms)),
        }


def examine(
    model: Transformer,
    kernel0: Any,
    cotangent: Any = None,
    keep: Sequence[int] = (),
    progress: Callable[[str], object] | None = None,
) -> Examination:
    """Look at a network with one input kernel.

    Args:
        model: the network.
        kernel0: the input kernel, ``(T, T)``.
        cotangent: where the loss reads, as for `gradient_norms`.
        keep: the depths whose kernels are kept; the first and the last if empty.
        progress: told in a word which of the two passes begins.

    Raises:
        ValueError: as `propagate` and `gradient_norms` do.

    >>> import kernelprop as kp
    >>> seen = examine(kp.Transformer(kp.uniform(4), depth=3), kp.kernels.identity(4))
    >>> for finding in seen.findings:
    ...     print(finding.words)
    collapses by layer 1: mean correlation 1 (to rounding) and rank residual 0 after layer 3
    the queries of layers 2 to 3 are dead in bfloat16, those of layers 2 to 3 in float32 too
    """
    tell = progress or (lambda stage: None)
    tell("forward")
    evolution = propagate(model, kernel0, sorted({0, model.depth, *keep}))
    stream = stream_of(evolution)
    tell("gradients")
    norms = gradient_norms(model, kernel0, cotangent)
    findings = (
        *collapse_findings(evolution),
        *diagonal_findings(stream),
        *trainability_findings(norms),
    )
    return Examination(model=model, evolution=evolution, stream=stream, norms=norms, findings=findings)


def _last(values: np.ndarray | None) -> float | None:
    return None if values is None else float(values[-1])


def _finite(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
