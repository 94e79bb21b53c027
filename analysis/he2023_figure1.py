"""He et al. 2023, Figure 1: what becomes of positions in deep attention-only networks without skips.

The usual initialisation, softmax attention with random queries and keys, against U-SPA and E-SPA, from uncorrelated
positions: the kernel at chosen depths, its mean correlation and its rank residual at all of them.

``python -m analysis.he2023_figure1`` writes the record; ``python -m figures.he2023_figure1`` draws it.
"""

import argparse
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

import kernelprop as kp
from analysis.records import FOLDER, write_record
from kernelprop.attention.random_softmax import random_softmax

NAME = "he2023_figure1"


@dataclass(frozen=True)
class Study:
    """The question: sizes, ends of the schedules, and how often random attention is drawn."""

    length: int = 100
    depth: int = 100
    shown: tuple[int, ...] = (0, 1, 10, 50, 100)
    gamma: float = 0.005
    rho: float = 0.8
    draws: int = 64
    chains: int = 8
    seed: int = 0

    def networks(self) -> dict[str, kp.Transformer]:
        """The three attention-only networks, by the name of their arrays."""
        vanilla = random_softmax(self.length, causal=True, draws=self.draws, chains=self.chains, seed=self.seed)
        operators: dict[str, Any] = {
            "vanilla": vanilla,
            "uspa": kp.uspa(self.length, self.depth, self.rho),
            "espa": kp.espa(self.length, self.depth, self.gamma),
        }
        return {name: kp.Transformer(operator, self.depth) for name, operator in operators.items()}


def run(study: Study, folder: Path = FOLDER) -> list[Path]:
    """Propagate the identity kernel through all networks and write the record."""
    start = time.perf_counter()
    arrays: dict[str, np.ndarray] = {"shown": np.array(study.shown)}
    summary: dict[str, Any] = {}
    for name, network in study.networks().items():
        evolution = kp.propagate(network, kp.kernels.identity(study.length), list(study.shown))
        arrays |= _arrays(name, evolution)
        summary[name] = _summary(evolution, study)
        print(f"{name}: {summary[name]}", flush=True)
    words = {"question": __doc__, "spec": asdict(study), "summary": summary}
    return write_record(NAME, words, arrays, time.perf_counter() - start, folder)


def _arrays(name: str, evolution: kp.Evolution) -> dict[str, np.ndarray]:
    """The kernels in float32, which is what a picture can show, and the numbers of every depth in full."""
    found = {
        f"{name}_kernels": evolution.kernels.astype(np.float32),
        f"{name}_mean_correlation": evolution.mean_correlation,
        f"{name}_rank_residual": evolution.rank_residual,
        f"{name}_below_floor": evolution.below_floor,
    }
    if evolution.rank_residual_stderr is not None:
        found[f"{name}_rank_residual_stderr"] = evolution.rank_residual_stderr
        found[f"{name}_mean_correlation_stderr"] = np.asarray(evolution.mean_correlation_stderr)
    return found


def _summary(evolution: kp.Evolution, study: Study) -> dict[str, Any]:
    numbers: dict[str, Any] = {"notes": list(evolution.notes)}
    for depth in study.shown:
        numbers[f"mean correlation at {depth}"] = float(evolution.mean_correlation[depth])
        numbers[f"rank residual at {depth}"] = float(evolution.rank_residual[depth])
    collapsed = np.flatnonzero(evolution.mean_correlation > 0.99)
    numbers["first depth with mean correlation above 0.99"] = int(collapsed[0]) if len(collapsed) else None
    return numbers


def main() -> None:
    """Run the study with the sizes of the paper, or others."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=Study.draws, help="matrices a layer and chain")
    parser.add_argument("--chains", type=int, default=Study.chains, help="independent runs through the depth")
    options = parser.parse_args()
    for file in run(Study(draws=options.draws, chains=options.chains)):
        print(f"written: {file}")


if __name__ == "__main__":
    main()
