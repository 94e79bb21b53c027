"""The page's tables: before and after, depth by depth, layer by layer."""

import re
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

import numpy as np

from kernelprop.diagnosis.collapse import digits
from kernelprop.diagnosis.examination import Examination
from kernelprop.diagnosis.finding import runs
from kernelprop.report.drawings import gradient_rows
from kernelprop.results import Evolution, GradientNorms

UNDEFINED = "undefined"


def before_and_after(before: Examination, after: Examination) -> str:
    """The numbers of a network as it is beside those of a changed one."""
    return table(["", "before", "after"], changed_numbers(before, after))


def changed_numbers(before: Examination, after: Examination) -> list[tuple[str, str, str]]:
    """Every number's name, what it was and what it is, as text."""
    old, new = (_numbers(examination) for examination in (before, after))
    return [(name, old[name], new[name]) for name in old]


def numbers_of(examination: Examination) -> str:
    """The same numbers of one network."""
    return table(["", "value"], [list(row) for row in _numbers(examination).items()])


def depth_table(evolution: Evolution) -> str:
    """Every depth's numbers."""
    rows = [
        [
            str(depth),
            _estimate(digits(float(evolution.mean_correlation[depth])), evolution.mean_correlation_stderr, depth),
            _estimate(number(evolution.rank_residual[depth]), evolution.rank_residual_stderr, depth)
            + (" *" if evolution.below_floor[depth] else ""),
            _span(evolution.diagonal[depth].min(), evolution.diagonal[depth].max()),
            _estimate(number(evolution.participation_ratio[depth]), evolution.participation_ratio_stderr, depth),
        ]
        for depth in range(evolution.layers + 1)
    ]
    return table(["depth", "mean correlation", "rank residual", "diagonal", "participation ratio"], rows)


def gradient_table(norms: GradientNorms) -> str:
    """Every layer's gradient norms; a star where the query row is of first order."""
    rows = gradient_rows(norms)
    body = []
    for index, exact in enumerate(norms.query_exact.tolist()):
        cells = [number(values[index]) + ("" if exact or name != "queries" else " *") for name, values in rows.items()]
        body.append([str(index + 1), *cells])
    return table(["layer", *rows], body)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """An HTML table that scrolls sideways where it is too wide; the first column names the rows."""
    cells = "".join(f'<th scope="col">{escape(title)}</th>' for title in head)
    body = "".join(
        f'<tr><th scope="row">{escape(row[0])}</th>{"".join(f"<td>{_whole(cell)}</td>" for cell in row[1:])}</tr>'
        for row in rows
    )
    return f'<div class="wide"><table><thead><tr>{cells}</tr></thead><tbody>{body}</tbody></table></div>'


def _whole(cell: str) -> str:
    """A cell whose powers of ten are not broken at their minus sign."""
    return re.sub(r"\S+e-\d+", r'<span class="number">\g<0></span>', escape(cell))


def number(value: Any) -> str:
    """Four digits, or a word for what is none.

    >>> number(0.123456), number(float("nan")), number(float("inf")), number(None)
    ('0.1235', 'undefined', '∞', 'undefined')
    """
    if value is None or np.isnan(value):
        return UNDEFINED
    return f"{value:.4g}" if np.isfinite(value) else "∞"


def _numbers(examination: Examination) -> dict[str, str]:
    found = examination.numbers()
    since = found["collapsed_from_layer"]
    dead = found["dead_queries_bfloat16"]
    error = {name: found[f"{name}_stderr"] for name in ("mean_correlation", "rank_residual")}
    low, high = (found[f"diagonal_factor_{end}"] for end in ("smallest", "largest"))
    return {
        "collapsed": "no" if since is None else ("from the input on" if since == 0 else f"from layer {since} on"),
        "mean correlation, last": _with_error(digits(found["mean_correlation"]), error["mean_correlation"]),
        "rank residual, last": _with_error(number(found["rank_residual"]), error["rank_residual"]),
        "diagonal, last over first": UNDEFINED if low is None or high is None else _span(low, high),
        "dead queries (bfloat16)": f"layers {runs(dead)}" if dead else "none",
        "least query over value gradient": number(found["query_over_value_smallest"]),
        "value gradients, largest over least": number(found["gradient_spread"]),
    }


def _span(low: float, high: float) -> str:
    first, last = number(low), number(high)
    return first if first == last else f"{first} to {last}"


def _estimate(text: str, errors: np.ndarray | None, depth: int) -> str:
    return _with_error(text, None if errors is None else float(errors[depth]))


def _with_error(text: str, error: float | None) -> str:
    return text if error is None else f"{text} ± {error:.2g}"
