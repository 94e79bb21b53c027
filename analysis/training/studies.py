"""The studies: which arms are compared, how deep, for how long, with how many seeds."""

from dataclasses import dataclass
from typing import NamedTuple

from analysis.training.arms import ARMS

LENGTH, WIDTH, HEADS, BATCH = 32, 64, 2, 16
DEPTH, STEPS, WARMUP = 24, 300, 50
DATA_SEED = 7
CLAIMED = 3
# The rates are swept at a third of the steps.
SWEEP = 3


class Run(NamedTuple):
    """One training run; its name says all of it."""

    arm: str
    depth: int
    steps: int
    rate: float
    seed: int

    @property
    def name(self) -> str:
        """The name of its record."""
        return f"{self.arm}-L{self.depth}-{self.steps}steps-lr{self.rate:g}-seed{self.seed}"


class Comparison(NamedTuple):
    """One arm of a study at its best rate."""

    arm: str
    depth: int = DEPTH
    steps: int = STEPS
    seeds: int = 1

    def runs(self, rate: float) -> list[Run]:
        """The runs at this rate."""
        return [Run(self.arm, self.depth, self.steps, rate, seed) for seed in range(self.seeds)]


@dataclass(frozen=True)
class Study:
    """A question and the runs that answer it."""

    letter: str
    question: str
    comparisons: tuple[Comparison, ...]

    def arms(self) -> tuple[str, ...]:
        """The arms, each once."""
        return tuple(dict.fromkeys(one.arm for one in self.comparisons))


def sweep(arm: str) -> list[Run]:
    """The runs that find an arm's rate: one seed, the common depth."""
    return [Run(arm, DEPTH, STEPS // SWEEP, rate, 0) for rate in ARMS[arm].rates]


_CLAIMS = ("vanilla_relu", "espa", "pre_ln")
_OF_A = (
    "vanilla_relu",
    "vanilla_gelu",
    "vanilla_ln",
    "espa",
    "espa_trained",
    "uspa",
    "skipinit",
    "pre_ln",
    "pre_ln_scaled",
    "pre_ln_learned",
)
_OF_B = ("espa", "espa_ln", "espa_dks", "espa_dks_ln", "espa_gelu", "espa_gelu_ln", "espa_sigmoid", "espa_sigmoid_ln")
_OF_C = (*(f"espa_skip{beta}{ln}" for beta in (2, 5, 8) for ln in ("", "_ln")), "espa", "pre_ln")

STUDIES = {
    study.letter: study
    for study in (
        Study(
            "a",
            "Which skipless networks train at all, and how far behind networks with skips are they?",
            (
                *(Comparison(arm, seeds=CLAIMED) for arm in _OF_A),
                *(Comparison(arm, depth=36) for arm in _CLAIMS),
            ),
        ),
        Study("b", "Which activations train in the E-SPA network?", tuple(Comparison(arm) for arm in _OF_B)),
        Study(
            "c",
            "Do normalised residuals bring E-SPA to Pre-LN, and does the norm matter?",
            tuple(Comparison(arm) for arm in _OF_C),
        ),
        Study(
            "d",
            "Does five times the training close the gap?",
            tuple(Comparison(arm, steps=5 * STEPS) for arm in _CLAIMS),
        ),
        Study(
            "e",
            "Does Adam cope with the imbalance of query and value gradients, and does SGD need the temperature?",
            tuple(Comparison(arm) for arm in ("espa", "espa_balanced", "espa_sgd", "espa_sgd_balanced", "pre_ln_sgd")),
        ),
        Study(
            "f",
            "What becomes of the token cosines of Post-LN before and during training?",
            (Comparison("post_ln", seeds=CLAIMED), Comparison("pre_ln"), Comparison("vanilla_relu")),
        ),
    )
}
