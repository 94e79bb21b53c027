"""Predictions beside outcomes: one row an arm, and the claims that the rows decide."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from analysis.training.arms import ARMS
from analysis.training.keeping import RECORDS, final_loss, has, read
from analysis.training.prediction import predict
from analysis.training.running import best_rate
from analysis.training.studies import DEPTH, STEPS, STUDIES, Comparison, Study, sweep


class Row(NamedTuple):
    """One comparison at its best rate: the mean over seeds, and its standard error (over batches for one seed)."""

    study: str
    comparison: Comparison
    rate: float
    losses: tuple[float, ...]
    stderr: float

    @property
    def loss(self) -> float:
        """The mean over seeds."""
        return float(np.mean(self.losses))


def rows(study: Study, records: Path = RECORDS) -> list[Row]:
    """The comparisons of a study whose runs have all been made."""
    found = []
    for comparison in study.comparisons:
        if not all(has(run, records) for run in sweep(comparison.arm)):
            continue
        rate = best_rate(comparison.arm, records)
        runs = comparison.runs(rate)
        made = [run for run in runs if has(run, records)]
        if len(made) == len(runs):
            losses = tuple(final_loss(run, records) for run in made)
            found.append(Row(study.letter, comparison, rate, losses, _error(losses, read(made[0], records).words)))
    return found


def _error(losses: tuple[float, ...], words: dict[str, Any]) -> float:
    if len(losses) > 1:
        return float(np.std(losses, ddof=1) / np.sqrt(len(losses)))
    return float("nan") if words["final"] is None else float(words["final"]["stderr"])


class Claim(NamedTuple):
    """A statement of the papers, the arms that it takes, and by how much of a nat it holds (negative: it doesn't)."""

    statement: str
    arms: tuple[str, ...]
    margin: Callable[[dict[str, float], dict[str, float]], float]
    depth: int = DEPTH
    steps: int = STEPS


def _at_plateau(loss: dict[str, float], level: dict[str, float]) -> float:
    return 0.02 - abs(loss["vanilla_relu"] - level["unigram"])


def _below_bigram(loss: dict[str, float], level: dict[str, float]) -> float:
    return level["bigram"] - loss["espa"]


def _shaping_matters(loss: dict[str, float], level: dict[str, float]) -> float:
    return min(level["bigram"] - loss["espa_dks"], loss["espa_gelu"] - level["bigram"])


def _skips_help(loss: dict[str, float], level: dict[str, float]) -> float:
    return loss["espa"] - min(loss["espa_skip2"], loss["espa_skip5"], loss["espa_skip8"])


def _better(one: str, other: str, statement: str, steps: int = STEPS) -> Claim:
    return Claim(statement, (one, other), lambda loss, level: loss[other] - loss[one], steps=steps)


# The name under which Pre-LN at the common number of steps is known to claims about longer runs.
ONCE = "pre_ln at once"
CLAIMS = (
    Claim("vanilla ReLU stays at the unigram entropy (within 0.02)", ("vanilla_relu",), _at_plateau),
    Claim("vanilla ReLU still stays there at depth 36", ("vanilla_relu",), _at_plateau, depth=36),
    Claim("vanilla ReLU still stays there after five times the steps", ("vanilla_relu",), _at_plateau, steps=5 * STEPS),
    Claim("E-SPA trains: below the bigram entropy", ("espa",), _below_bigram),
    Claim("E-SPA trains at depth 36", ("espa",), _below_bigram, depth=36),
    _better("espa", "uspa", "E-SPA is better than U-SPA"),
    _better("espa", "skipinit", "E-SPA is better than Value-SkipInit"),
    _better("pre_ln", "espa", "Pre-LN is better than E-SPA"),
    _better("pre_ln_scaled", "pre_ln", "Pre-LN with 1/√L is better than Pre-LN"),
    _better("espa", ONCE, "five times the steps bring E-SPA to where Pre-LN is after one time", 5 * STEPS),
    Claim("shaped GELU trains with E-SPA where GELU as it is doesn't", ("espa_dks", "espa_gelu"), _shaping_matters),
    Claim(
        "some normalised skip makes E-SPA better than none",
        ("espa", "espa_skip2", "espa_skip5", "espa_skip8"),
        _skips_help,
    ),
    _better("espa_sgd", "pre_ln_sgd", "with SGD E-SPA is better than Pre-LN"),
    _better("pre_ln", "post_ln", "Pre-LN is better than Post-LN at this depth"),
)


def decided(records: Path = RECORDS) -> list[tuple[str, str]]:
    """Every claim with ``"replicates"``, ``"does not"``, ``"too close to tell"`` or ``"not run"``.

    A margin counts from two standard errors on: over seeds where there are several, else over batches, which leaves
    out how much seeds differ.
    """
    everything = [row for study in STUDIES.values() for row in rows(study, records)]
    levels = _levels(everything, records)
    return [(claim.statement, _verdict(claim, everything, levels)) for claim in CLAIMS]


def _verdict(claim: Claim, everything: list[Row], levels: dict[str, float]) -> str:
    found: dict[str, Row] = {}
    # An arm that several studies compare counts with the most seeds, which comes last here.
    for row in sorted(everything, key=lambda row: row.comparison.seeds):
        if (row.comparison.depth, row.comparison.steps) == (claim.depth, claim.steps):
            found[row.comparison.arm] = row
        if row.comparison == ("pre_ln", DEPTH, STEPS, row.comparison.seeds):
            found[ONCE] = row
    if any(arm not in found for arm in claim.arms):
        return "not run"
    margin = claim.margin({arm: row.loss for arm, row in found.items()}, levels)
    error = float(np.sqrt(np.nansum([found[arm].stderr ** 2 for arm in claim.arms])))
    if abs(margin) < 2 * error:
        return f"too close to tell ({margin:+.3f} ± {error:.3f})"
    return f"{'replicates' if margin > 0 else 'does not'} ({margin:+.3f} ± {error:.3f})"


def _levels(everything: list[Row], records: Path) -> dict[str, float]:
    if not everything:
        return {}
    row = everything[0]
    return read(row.comparison.runs(row.rate)[0], records).words["levels"]


def table(records: Path = RECORDS) -> str:
    """All rows as text: outcome, and the prediction at initialisation beside it.

    A star marks a rate at an edge of its sweep: a better one may lie outside.
    """
    lines = [
        "| study | arm | depth | steps | rate | validation loss | seeds | correlation | spread | query/value |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for study in STUDIES.values():
        for row in rows(study, records):
            one = row.comparison
            known = predict(one.arm, one.depth)
            rates = ARMS[one.arm].rates
            edge = "*" if row.rate in (rates[0], rates[-1]) else ""
            lines.append(
                f"| {study.letter} | {ARMS[one.arm].label} | {one.depth} | {one.steps} | {row.rate:g}{edge} | "
                f"{row.loss:.3f} ± {row.stderr:.3f} | {one.seeds} | {known.correlation:.4f} | {known.spread:.2f} | "
                f"{known.imbalance:.2f} |"
            )
    return "\n".join(lines)
