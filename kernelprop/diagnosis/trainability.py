"""Whether gradients reach every weight: queries lost to rounding, and layers that learn at another pace."""

from collections.abc import Iterator

import numpy as np

from kernelprop.balance import dead_queries
from kernelprop.diagnosis.finding import Finding, runs
from kernelprop.results import GradientNorms

# How far apart the gradient norms of two layers' values may be.
SPREAD = 100.0


def trainability_findings(norms: GradientNorms) -> Iterator[Finding]:
    """Dead queries (in bfloat16, and then in float32), and value gradients more than a factor 100 apart."""
    dead = dead_queries(norms, "bfloat16")
    if dead:
        whole = dead_queries(norms, "float32")
        deeper = f", those of {_layers(whole)} in float32 too" if whole else ""
        words = f"the queries of {_layers(dead)} are dead in bfloat16{deeper}"
        yield Finding("queries", words, (dead[0], dead[-1]))
    value = norms.value
    if value is None or not len(value):
        return
    if not np.all(np.isfinite(value)):
        yield Finding("gradients", "the value gradients overflow")
        return
    spread = gradient_spread(norms)
    if spread >= SPREAD:
        high, low = int(np.argmax(value)) + 1, int(np.argmin(value)) + 1
        times = "infinitely many" if np.isinf(spread) else f"{spread:.3g}"
        yield Finding("gradients", f"the value gradient of layer {high} is {times} times that of layer {low}")


def gradient_spread(norms: GradientNorms) -> float:
    """``max_l ‖∂loss/∂W_V‖ / min_l ‖∂loss/∂W_V‖``, of roots of expected squares.

    >>> import kernelprop as kp
    >>> gradient_spread(kp.gradient_norms(kp.Transformer(kp.uniform(4), depth=2), kp.kernels.identity(4)))
    1.0
    """
    value = np.asarray(norms.value, np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(np.sqrt(value.max() / value.min()))


def query_over_value(norms: GradientNorms) -> float:
    """``min_l ‖∂loss/∂W_Q‖ / ‖∂loss/∂W_V‖``, of roots of expected squares; NaN where no layer has both.

    >>> import kernelprop as kp
    >>> norms = kp.gradient_norms(kp.Transformer(kp.uniform(4), depth=2), kp.kernels.identity(4))
    >>> round(query_over_value(norms), 6)  # the second layer's positions are all alike
    0.0
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.sqrt(np.asarray(norms.query, np.float64) / np.asarray(norms.value, np.float64))
    defined = ratios[~np.isnan(ratios)]
    return float(defined.min()) if len(defined) else float("nan")


def _layers(layers: list[int]) -> str:
    return f"layer{'s' if len(layers) > 1 else ''} {runs(layers)}"
