"""``python -m analysis.benchmarks.peers [--interpreter PYTHON | --environment FOLDER] [--quick] [--check]``.

neural-tangents (Novak et al. 2020, arXiv 1912.02803), ``dks``, numpy and plain scan loops beside `kernelprop`, on the
same work. Every contender is a process of its own on one core; they take turns, and ratios are of processor time. The
peers need another jax, so they have an interpreter of their own: one that is named (or ``PEERS_PYTHON``), or an
environment that this program makes in a folder. ``--check`` writes nothing and fails where a ratio is more than 20 %
worse than the stored one.
"""

import argparse
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from analysis.benchmarks import regression
from analysis.benchmarks.peers.interpreters import PACKAGES, VARIABLE, Missing, interpreter, without
from analysis.benchmarks.peers.turns import in_turns
from analysis.benchmarks.peers.verdicts import BUILDING, CLOCK, RUNNING, further_layers, in_words, ratios, verdicts
from analysis.benchmarks.peers.works import GAIN, WIDTH, Work, full, programs, quick
from analysis.benchmarks.writing import RESULTS, environment, write_result

NEEDED = {"repeated": "neural-tangents", "unrolled": "neural-tangents", "dks": "dks"}


def measured(work: Work, python: str, repeats: int) -> dict[str, Any]:
    """One row."""
    served = programs(python)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "arrays.npz")
        inputs, matrix = arrays(work.length)
        np.savez(path, inputs=inputs, matrix=matrix)
        contenders = {name: served[name] for name in work.contenders}
        found = in_turns(contenders, work.job() | {"arrays": str(path)}, repeats, work.alike)
    return work._asdict() | {"title": work.title(), **found}


def arrays(length: int) -> tuple[np.ndarray, np.ndarray]:
    """Inputs of a few features, so that their kernel costs nobody anything, and a softmax of random logits."""
    rng = np.random.default_rng(0)
    weights = np.exp(rng.normal(size=(length, length)))
    return rng.normal(size=(length, WIDTH)), weights / weights.sum(-1, keepdims=True)


def show(row: Mapping[str, Any]) -> None:
    """Print one row: milliseconds a layer (of a solve, at all), and the ratios."""
    layers = 1 if row["activation"] else row["depth"]
    found = ratios(row)
    print(f"{row['title']}:", flush=True)
    for name, seconds in row[RUNNING].items():
        print(
            f"  {name:>12}: {1e3 * seconds[CLOCK] / layers:9.3f} ms{' a layer' if layers > 1 else ''}, "
            f"{found[RUNNING][name]:8.3g} times ours; with building {row[BUILDING][name][CLOCK]:7.3f} s, "
            f"{found[BUILDING][name]:8.3g} times; peak {row['peak GiB'][name]:.3f} GiB"
            + (f"; differs by {row['difference'][name]:.1g}" if name in row["difference"] else ""),
            flush=True,
        )


def cost(rows: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """What `kernelprop` takes over what each contender takes, running only, for the regression check."""
    return {
        f"{row['title']}, kernelprop / {name}": 1 / ratio
        for row in rows
        for name, ratio in ratios(row)[RUNNING].items()
        if name != "kernelprop"
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, judge, and write the result whole; without a peer say so and leave it out."""
    parser = argparse.ArgumentParser(prog="python -m analysis.benchmarks.peers", description=__doc__)
    parser.add_argument("--interpreter", metavar="PYTHON", help=f"one that has the peers (or {VARIABLE})")
    parser.add_argument("--environment", metavar="FOLDER", type=Path, help="where to make one with them")
    parser.add_argument("--quick", action="store_true", help="small sizes, two minutes or so")
    parser.add_argument("--check", action="store_true", help="compare with the stored results instead of writing them")
    chosen = parser.parse_args(arguments)
    path = RESULTS / ("peers-quick.json" if chosen.quick else "peers.json")
    try:
        stored = cost(regression.read(path)["rows"]) if chosen.check else None
        python = interpreter(chosen.interpreter, chosen.environment)
    except ValueError as reason:
        print(reason, file=sys.stderr)
        return 2
    except Missing as reason:
        print(f"skipped: {reason}")
        return 0
    missing = without(python)
    for name, said in missing.items():
        print(f"skipped: {name}: {said}")
    started = environment()
    rows = []
    for work in quick() if chosen.quick else full():
        present = tuple(name for name in work.contenders if NEEDED.get(name) not in missing)
        if len(present) < 2:
            continue
        alike = tuple(name for name in work.alike if name in present)
        rows.append(measured(work._replace(contenders=present, alike=alike), python, 3))
        show(rows[-1])
    further, judged = further_layers(rows), list(verdicts(rows))
    for row in further:
        told = ", ".join(f"{name} {value:.3g} ms" for name, value in row["milliseconds"].items())
        print(f"{row['title']}: {told}")
    print(*map(in_words, judged), sep="\n")
    if stored is not None:
        here = {name: value for name, value in stored.items() if not _lacks(name, missing)}
        return regression.told(path, here, cost(rows))
    content = {"environment": started, "packages": PACKAGES, "gain": GAIN, "skipped": missing}
    print(f"written to {write_result(path, content | {'rows': rows, 'further layers': further, 'verdicts': judged})}")
    return 0


def _lacks(name: str, missing: Mapping[str, str]) -> bool:
    return any(NEEDED.get(contender) in missing for contender in NEEDED if name.endswith(f"/ {contender}"))


if __name__ == "__main__":
    sys.exit(main())
