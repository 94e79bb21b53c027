"""A run as strict JSON, and the evidence of a recorded run back from it."""

import datetime
import json
import math
import os
import platform
from collections.abc import Sequence
from typing import Any

import numpy as np

from kernelprop.files import write_whole
from paper_checks import family
from paper_checks.check import Curve, Evidence, Plot
from paper_checks.effort import Effort
from paper_checks.run import Outcome, comparisons


def header(outcomes: Sequence[Outcome], effort: Effort, seconds: float) -> dict[str, Any]:
    """What the run was: mode, date, versions, device, and the family of comparisons."""
    import jax
    import scipy
    import sympy

    import kernelprop

    verdicts = [one.verdict.name for one in outcomes]
    return {
        "mode": "quick" if effort.quick else "full",
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "seconds": round(seconds, 1),
        "device": f"{jax.devices()[0].platform} ({os.cpu_count()} cores, {platform.machine()})",
        "versions": {
            "kernelprop": kernelprop.__version__,
            "python": platform.python_version(),
            "jax": jax.__version__,
            "numpy": np.__version__,
            "scipy": scipy.__version__,
            "sympy": sympy.__version__,
        },
        "family_failure": family.FAILURE,
        "comparisons": comparisons(outcomes),
        "comparisons_allowed": family.COMPARISONS,
        "power": family.POWER,
        "verdicts": {name: verdicts.count(name) for name in ("holds", "fails", "inconclusive")},
    }


def entry(outcome: Outcome) -> dict[str, Any]:
    """One check: what it says, every number compared, and what came of it."""
    check, found, verdict = outcome.check, outcome.found, outcome.verdict
    return {
        "id": check.id,
        "statement": check.statement,
        "formula": check.formula,
        "source": check.source,
        "settings": check.settings,
        "estimator": check.estimator,
        "tolerance": check.tolerance.in_words(),
        "control": check.control,
        "verdict": verdict.name,
        "reason": verdict.reason,
        "score": verdict.score,
        "worst": found.labels[verdict.worst],
        "control_rejected": verdict.control_rejected,
        "control_score": verdict.control_score,
        "finding": found.finding,
        "seed": found.seed,
        "draws": found.draws,
        "seconds": round(outcome.seconds, 2),
        "labels": list(found.labels),
        "predicted": found.prediction.tolist(),
        "control_predicted": found.control.tolist(),
        "measured": found.measured.tolist(),
        "stderr": None if found.stderr is None else found.stderr.tolist(),
        "plot": None if found.plot is None else _plot(found.plot),
    }


def write(path: str | os.PathLike[str], top: dict[str, Any], outcomes: Sequence[Outcome]) -> None:
    """Write the run as strict JSON, whole or not at all; what isn't finite becomes null."""
    document = _strict({"run": top, "checks": [entry(one) for one in outcomes]})
    text = json.dumps(document, ensure_ascii=False, allow_nan=False, indent=1)
    write_whole(path, lambda stream: stream.write((text + "\n").encode()))


def evidence_of(recorded: dict[str, Any]) -> Evidence:
    """The evidence of a recorded check, to be judged again without new draws."""

    def numbers(name: str) -> np.ndarray:
        return np.array([np.nan if value is None else value for value in recorded[name]], np.float64)

    return Evidence(
        prediction=numbers("predicted"),
        control=numbers("control_predicted"),
        measured=numbers("measured"),
        stderr=None if recorded["stderr"] is None else numbers("stderr"),
        labels=tuple(recorded["labels"]),
        draws=recorded["draws"],
        seed=recorded["seed"],
        finding=recorded["finding"],
    )


def _plot(plot: Plot) -> dict[str, Any]:
    axes = {"x_label": plot.x_label, "y_label": plot.y_label, "log_x": plot.log_x, "log_y": plot.log_y}
    return axes | {"curves": [_curve(curve) for curve in plot.curves]}


def _curve(curve: Curve) -> dict[str, Any]:
    arrays = {name: getattr(curve, name) for name in ("x", "measured", "stderr", "predicted", "control")}
    listed = {name: None if array is None else np.asarray(array).tolist() for name, array in arrays.items()}
    return {"name": curve.name} | listed


def _strict(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _strict(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_strict(part) for part in value]
    if isinstance(value, np.generic):
        return _strict(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
