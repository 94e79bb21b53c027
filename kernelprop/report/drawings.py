"""Which charts the page has: the network as it is, and as each suggestion would have it."""

from collections.abc import Iterator, Sequence

import numpy as np

from kernelprop.balance import ROUNDING
from kernelprop.diagnosis.collapse import RESIDUAL
from kernelprop.diagnosis.diagnose import Diagnosis
from kernelprop.diagnosis.examination import Examination
from kernelprop.report.charts import Chart, Line, figure
from kernelprop.report.scales import linear_scale, log_scale
from kernelprop.results import GradientNorms

AS_IT_IS = "as it is"
WEIGHTS = {
    "query": "queries",
    "key": "keys",
    "value": "values",
    "output": "output",
    "mlp_in": "MLP in",
    "mlp_gate": "MLP gate",
    "mlp_out": "MLP out",
}
# The diagonal is drawn on a log axis where it changes by more than this.
MUCH = 10.0


def networks(diagnosis: Diagnosis) -> list[tuple[str, Examination]]:
    """The network as it is, then the suggested ones, each with its name."""
    suggested = [(a.name, a.after) for a in diagnosis.suggestions if a.after is not None]
    return [(AS_IT_IS, diagnosis.before), *suggested]


def kernel_charts(diagnosis: Diagnosis) -> str:
    """Mean correlation, rank residual and diagonal against depth."""
    named = networks(diagnosis)
    seen = [(name, examination.evolution) for name, examination in named]
    own = diagnosis.before.stream
    correlation = _lines([(name, evolution.mean_correlation) for name, evolution in seen])
    residual = _lines([(name, evolution.rank_residual) for name, evolution in seen])
    low, high = own.diagonal.min(-1), own.diagonal.max(-1)
    diagonal = _lines([(name, examination.stream.diagonal.mean(-1)) for name, examination in named])
    drawn = [*(line.values for line in diagonal), low, high]
    positive = np.concatenate([values[np.isfinite(values) & (values > 0)] for values in drawn])
    wide = len(positive) > 0 and positive.max() / positive.min() > MUCH
    charts = (
        Chart("Mean correlation of the positions", "depth", 0, correlation, linear_scale(_values(correlation), 0, 1)),
        Chart(
            "Rank residual",
            "depth",
            0,
            residual,
            log_scale([*_values(residual), np.array([RESIDUAL / 2])]),
            threshold=(RESIDUAL, "collapsed below"),
        ),
        Chart(
            f"Diagonal: mean variance of the positions{', before the final norm' if own.final else ''}",
            "depth",
            0,
            diagonal,
            log_scale(drawn) if wide else linear_scale(drawn, 0, 1),
            band=(low, high, f"least to largest, {AS_IT_IS}"),
        ),
    )
    return "".join(figure(chart) for chart in charts)


def gradient_charts(diagnosis: Diagnosis) -> str:
    """Gradient norms of all weights against the layer, a chart for each network, on one scale."""
    seen = [(name, _rows(examination.norms)) for name, examination in networks(diagnosis)]
    scale = log_scale([values for _, rows in seen for values in rows.values()] or [np.ones(1)])
    return "".join(
        figure(
            Chart(
                "Gradient norm of each weight" if len(seen) == 1 else f"Gradient norms, {name}",
                "layer",
                1,
                [*(Line(WEIGHTS[weight], values, _look(weight)) for weight, values in rows.items()), *_death(rows)],
                scale,
            )
        )
        for name, rows in seen
    )


def gradient_rows(norms: GradientNorms) -> dict[str, np.ndarray]:
    """Roots of the expected squared norms at width 1, of the weights that have a gradient, ``(L,)`` by name."""
    return {WEIGHTS[name]: values for name, values in _rows(norms).items()}


def _rows(norms: GradientNorms) -> dict[str, np.ndarray]:
    found = {name: getattr(norms, name) for name in WEIGHTS}
    roots = {name: np.sqrt(np.asarray(values, np.float64)) for name, values in found.items() if values is not None}
    # Keys have no gradient while the queries are zero; a line of zeros has no place on a log axis.
    return {name: values for name, values in roots.items() if np.any(values > 0) or name == "query"}


def _death(rows: dict[str, np.ndarray]) -> Iterator[Line]:
    if "value" in rows and "query" in rows:
        yield Line("queries below are dead in bfloat16", ROUNDING["bfloat16"] * rows["value"], 6)


def _look(weight: str) -> int:
    return {"query": 2, "key": 4, "value": 1, "output": 3, "mlp_in": 0, "mlp_gate": 4, "mlp_out": 5}[weight]


def _lines(named: Sequence[tuple[str, np.ndarray]]) -> list[Line]:
    return [Line(name, values, look) for look, (name, values) in enumerate(named)]


def _values(lines: Sequence[Line]) -> list[np.ndarray]:
    return [line.values for line in lines]
