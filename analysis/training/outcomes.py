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
    """A statement of the papers, the arms that it takes, and what decides it."""

    statement: str
    arms: tuple[str, ...]
    holds: Callable[[dict[str, float], dict[str, float]], bool]
    depth: int = DEPTH
    steps: int = STEPS


CLAIMS = (
    Claim(
        "vanilla ReLU stays at the unigram entropy (within 0.02)",
        ("vanilla_relu",),
        lambda loss, level: abs(loss["vanilla_relu"] - level["unigram"]) < 0.02,
    ),
    Claim(
        "vanilla ReLU still stays there at depth 36",
        ("vanilla_relu",),
        lambda loss, level: abs(loss["vanilla_relu"] - level["unigram"]) < 0.02,
        depth=36,
    ),
    Claim(
        "vanilla ReLU still stays there with five times the steps",
        ("vanilla_relu",),
        lambda loss, level: abs(loss["vanilla_relu"] - level["unigram"]) < 0.02,
        steps=5 * STEPS,
    ),
    Claim("E-SPA trains: below the bigram entropy", ("espa",), lambda loss, level: loss["espa"] < level["bigram"]),
    Claim("E-SPA trains at depth 36", ("espa",), lambda loss, level: loss["espa"] < level["bigram"], depth=36),
    Claim("E-SPA is better than U-SPA", ("espa", "uspa"), lambda loss, level: loss["espa"] < loss["uspa"]),
    Claim(
        "E-SPA is better than Value-SkipInit", ("espa", "skipinit"), lambda loss, level: loss["espa"] < loss["skipinit"]
    ),
    Claim("Pre-LN is better than E-SPA", ("espa", "pre_ln"), lambda loss, level: loss["pre_ln"] < loss["espa"]),
    Claim(
        "Pre-LN with 1/√L is better than Pre-LN",
        ("pre_ln", "pre_ln_scaled"),
        lambda loss, level: loss["pre_ln_scaled"] < loss["pre_ln"],
    ),
    Claim(
        "five times the steps bring E-SPA to what Pre-LN has after one time",
        ("espa",),
        lambda loss, level: loss["espa"] < loss["pre_ln at once"],
        steps=5 * STEPS,
    ),
    Claim(
        "shaped GELU trains in the E-SPA network where GELU as it is doesn't",
        ("espa_dks", "espa_gelu"),
        lambda loss, level: loss["espa_dks"] < level["bigram"] < loss["espa_gelu"],
    ),
    Claim(
        "some normalised skip makes E-SPA better than without",
        ("espa", "espa_skip2", "espa_skip5", "espa_skip8"),
        lambda loss, level: min(loss["espa_skip2"], loss["espa_skip5"], loss["espa_skip8"]) < loss["espa"],
    ),
    Claim("Post-LN at this depth is worse than Pre-LN", ("post_ln", "pre_ln"), lambda v, _: v["pre_ln"] < v["post_ln"]),
)


def decided(records: Path = RECORDS) -> list[tuple[str, str]]:
    """Every claim with ``"replicates"``, ``"does not"`` or ``"not run"``."""
    everything = [row for study in STUDIES.values() for row in rows(study, records)]
    levels = _levels(everything, records)
    verdicts = []
    for claim in CLAIMS:
        losses = {
            row.comparison.arm: row.loss
            for row in everything
            if (row.comparison.depth, row.comparison.steps) == (claim.depth, claim.steps)
        }
        once = [row.loss for row in everything if row.comparison[:3] == ("pre_ln", DEPTH, STEPS)]
        if once:
            losses["pre_ln at once"] = once[0]
        try:
            verdict = "replicates" if claim.holds(losses, levels) else "does not"
        except KeyError:
            verdict = "not run"
        verdicts.append((claim.statement, verdict))
    return verdicts


def _levels(everything: list[Row], records: Path) -> dict[str, float]:
    if not everything:
        return {}
    row = everything[0]
    return read(row.comparison.runs(row.rate)[0], records).words["levels"]


def table(records: Path = RECORDS) -> str:
    """All rows as text: outcome, and the prediction at initialisation beside it."""
    lines = [
        "| study | arm | depth | steps | rate | validation loss | seeds | correlation | spread | query/value |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for study in STUDIES.values():
        for row in rows(study, records):
            one = row.comparison
            known = predict(one.arm, one.depth)
            lines.append(
                f"| {study.letter} | {ARMS[one.arm].label} | {one.depth} | {one.steps} | {row.rate:g} | "
                f"{row.loss:.3f} ± {row.stderr:.3f} | {one.seeds} | {known.correlation:.4f} | {known.spread:.2f} | "
                f"{known.imbalance:.2f} |"
            )
    return "\n".join(lines)
