"""One run after another: each is resumed where it stopped, and recorded as it finishes."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from analysis.training.arms import ARMS
from analysis.training.keeping import CHECKPOINTS, RECORDS, final_loss, has, keep, keep_failure
from analysis.training.studies import BATCH, DATA_SEED, HEADS, LENGTH, STEPS, SWEEP, WARMUP, WIDTH, Run, Study, sweep
from kernelprop.training import markov
from kernelprop.training.loop import Diverged, Now
from kernelprop.training.recipe import Recipe, Watch
from kernelprop.training.run import train


def recipe_of(run: Run) -> Recipe:
    """Warm-up of a sixth, cosine to a tenth, clip 1, AdamW (0.9, 0.98) or SGD with momentum."""
    optimiser: Any = ARMS[run.arm].optimiser
    warmup = WARMUP * run.steps // STEPS if run.steps < STEPS else WARMUP
    return Recipe(steps=run.steps, batch=BATCH, optimiser=optimiser, learning_rate=run.rate, warmup=warmup)


def watch_of(run: Run) -> Watch:
    """Sweeps are watched at both ends alone."""
    return Watch(points=2) if run.steps == STEPS // SWEEP else Watch(points=11)


def perform(run: Run, records: Path = RECORDS, checkpoints: Path = CHECKPOINTS) -> None:
    """Make a run, or go on with it, and write its record; nothing where there is one."""
    if has(run, records):
        return
    arm = ARMS[run.arm]
    checkpoints.mkdir(parents=True, exist_ok=True)
    file = checkpoints / f"{run.name}.npz"
    start = time.perf_counter()
    try:
        found = train(
            arm.network(LENGTH, run.depth),
            markov(seed=DATA_SEED),
            width=WIDTH,
            heads=HEADS,
            trainable=arm.trainable,
            embedding_scale=arm.embedding_scale,
            recipe=recipe_of(run),
            watch=watch_of(run),
            seed=run.seed,
            checkpoint=file,
            progress=_tell(run),
        )
    except Diverged as failure:
        keep_failure(
            run, str(failure).replace(str(file), file.name), failure.step, time.perf_counter() - start, records
        )
        print(f"{run.name}: {failure}", flush=True)
    else:
        keep(run, found, found.seconds, records)
        print(f"{run.name}: {float(found.final.mean):.4f} ± {float(found.final.stderr):.4f}", flush=True)
    file.unlink(missing_ok=True)


def best_rate(arm: str, records: Path = RECORDS) -> float:
    """The rate of the sweep's lowest loss; all of the sweep must have been made."""
    return min(sweep(arm), key=lambda run: final_loss(run, records)).rate


def perform_arms(study: Study, arms: Sequence[str], records: Path = RECORDS, checkpoints: Path = CHECKPOINTS) -> None:
    """Sweep each of these arms of a study, then make its comparisons at the best rate."""
    for comparison in study.comparisons:
        if comparison.arm in arms:
            for run in sweep(comparison.arm):
                perform(run, records, checkpoints)
            for run in comparison.runs(best_rate(comparison.arm, records)):
                perform(run, records, checkpoints)


def _tell(run: Run) -> Any:
    def tell(now: Now) -> None:
        if now.done % 50 == 0 and now.done < now.steps:
            print(f"  {run.name}: step {now.done}, loss {now.loss:.3f}, {now.seconds_left:.0f} s left", flush=True)

    return tell
