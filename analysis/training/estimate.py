"""How long the studies take, before they start."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from analysis.training.keeping import RECORDS, has
from analysis.training.studies import DEPTH, Run, Study, sweep

# CPU seconds of one core: a step of 24 layers, and what a run takes beside its steps (compiling, measuring).
STEP, BESIDE = 0.16, 14.0


class Estimate(NamedTuple):
    """Runs and CPU minutes of a study, those made already left out of ``minutes``."""

    runs: int
    made: int
    minutes: float


def estimate(studies: Sequence[Study], records: Path = RECORDS) -> dict[str, Estimate]:
    """The estimate of each study by its letter; a run that two studies share counts in the first."""
    counted: set[str] = set()
    found = {}
    for study in studies:
        runs = {name: run for name, run in needed(study, records).items() if name not in counted}
        counted |= runs.keys()
        left = [run for run in runs.values() if not has(run, records)]
        seconds = sum(BESIDE + STEP * run.steps * run.depth / DEPTH for run in left)
        found[study.letter] = Estimate(len(runs), len(runs) - len(left), seconds / 60)
    return found


def needed(study: Study, records: Path = RECORDS) -> dict[str, Run]:
    """All runs of a study by name; where the best rate is not known yet, the first one stands for it."""
    runs: dict[str, Run] = {}
    for comparison in study.comparisons:
        sweeps = sweep(comparison.arm)
        rate = sweeps[0].rate
        if all(has(run, records) for run in sweeps):
            from analysis.training.running import best_rate

            rate = best_rate(comparison.arm, records)
        runs |= {run.name: run for run in (*sweeps, *comparison.runs(rate))}
    return runs
