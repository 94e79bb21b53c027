"""Trainability map: which residual scale and temperature keep both kernel and gradients healthy.

For one length, depth and activation, or for a user's own network: skips of weight 1, branches of weight ``β``,
logits times ``τ``. The kernel is healthy while the positions stay apart and the diagonal in bounds; the gradients
are while all layers' values learn at a like pace, and the queries at one like the values'.

The limits are the map's own, and not those of ``kernelprop report``. The report asks what is lost at initialisation
(mean correlation 0.99, value gradients a factor 100 apart, queries that bfloat16 rounds away, variance that keeps
growing or shrinking by equal factors); the map asks what learns at a like pace: mean correlation below 0.95, value
gradients within a factor 10 of each other, queries within a factor 10 of the values. The diagonal may end a hundredfold
above or below the input's, since Pre-LN streams grow by equal steps and train.
"""

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

import kernelprop as kp
from analysis.activation_maps import shaped
from kernelprop.balance import with_branches
from kernelprop.diagnosis.stream import without_final_norm

HEALTHY = 0
COLLAPSED, GROWN, UNEVEN, QUERIES_LOW, QUERIES_HIGH = 1, 2, 4, 8, 16


class Setting(NamedTuple):
    """Length, depth, activation and the place of the norm, of a network with causal uniform attention."""

    length: int
    depth: int
    activation: str
    norm: str

    @classmethod
    def of(cls, words: str) -> "Setting":
        """``"32 12 gelu none"`` as a setting.

        Raises:
            ValueError: for other words.

        >>> Setting.of("32 12 gelu none").depth
        12
        """
        match words.split():
            case [length, depth, activation, "none" | "pre" | "post" as norm] if length.isdigit() and depth.isdigit():
                return cls(int(length), int(depth), activation, norm)
        raise ValueError(f"{words!r}: wanted are length, depth, activation, and none, pre or post, as 32 12 gelu pre")


@dataclass(frozen=True)
class Spec:
    """Networks by ``length depth activation norm``, or a description; the grid; and what counts as healthy.

    A network is healthy where the mean correlation is below ``most_correlation``, the diagonal (in front of a final
    norm) within a factor ``most_growth`` of the input's, the norms of the layers' value gradients within a factor
    ``most_spread`` of each other, and those of queries over those of values between ``least_ratio`` and ``most_ratio``
    in every layer.
    """

    name: ClassVar[str] = "trainability"
    question: ClassVar[str] = "which residual scale and temperature keep both kernel and gradients healthy?"

    networks: tuple[str, ...] = (
        "32 12 gelu none",
        "128 12 gelu none",
        "32 48 gelu none",
        "32 48 tat(leaky_relu) none",
        "32 48 gelu post",
        "32 48 gelu pre",
    )
    description: str = ""
    digest: str = ""
    least_beta: float = 0.02
    betas: int = 18
    least_tau: float = 0.25
    most_tau: float = 256.0
    taus: int = 21
    most_correlation: float = 0.95
    most_growth: float = 100.0
    most_spread: float = 10.0
    least_ratio: float = 0.1
    most_ratio: float = 10.0

    @classmethod
    def quick(cls) -> Self:
        return cls(networks=("8 4 relu none",), betas=4, taus=4)

    @classmethod
    def of_file(cls, path: Path) -> Self:
        """The map of a description's own network.

        Raises:
            ValueError: as `kernelprop.load_description` does.
        """
        described = kp.load_description(path)
        coarse: dict[str, Any] = {"betas": 7, "taus": 6} if _is_random(described.model) else {}
        return cls(networks=(described.name,), description=str(path), digest=_digest(path), **coarse)

    @property
    def file(self) -> str:
        """The description that the network is from, if there is one."""
        return self.description

    def points(self) -> tuple[str, ...]:
        return self.networks

    def beta_values(self) -> np.ndarray:
        return np.geomspace(self.least_beta, 1.0, self.betas)

    def tau_values(self) -> np.ndarray:
        return np.geomspace(self.least_tau, self.most_tau, self.taus)

    def measure(self, point: str) -> dict[str, Any]:
        """Arrays ``(betas, taus)``; where the queries start at zero only the query norms know of ``τ``."""
        network, kernel = self._network(point)
        asked = self.tau_values() if _is_random(network) else np.ones(1)
        rows = [[_numbers(tempered(network, beta, tau), kernel) for tau in asked] for beta in self.beta_values()]
        found = {name: np.array([[row[name] for row in line] for line in rows]) for name in rows[0][0]}
        scale = np.ones(self.taus) if _is_random(network) else self.tau_values()
        return {
            name: array * (scale if name.startswith("ratio") else np.ones(self.taus)) for name, array in found.items()
        }

    def verdict(self, found: dict[str, np.ndarray]) -> np.ndarray:
        """What is wrong at each point of the grid, a sum of the codes above; 0 is healthy. Shape ``(betas, taus)``."""
        collapsed = ~(found["mean_correlation"] < self.most_correlation)
        grown = ~((found["growth"] <= self.most_growth) & (found["growth"] >= 1 / self.most_growth))
        uneven = ~(found["spread"] <= self.most_spread)
        low = ~(found["ratio_least"] >= self.least_ratio)
        high = ~(found["ratio_most"] <= self.most_ratio)
        codes = (COLLAPSED, GROWN, UNEVEN, QUERIES_LOW, QUERIES_HIGH)
        ills = (collapsed, grown, uneven, low, high)
        return np.sum([code * ill for code, ill in zip(codes, ills, strict=True)], axis=0)

    def _network(self, point: str) -> tuple[kp.Transformer, np.ndarray]:
        if self.description:
            if _digest(Path(self.description)) != self.digest:
                raise ValueError(f"{self.description}: has changed since the study began")
            described = kp.load_description(self.description)
            return described.model, described.kernel0
        setting = Setting.of(point)
        return block_stack(setting), kp.kernels.identity(setting.length)


def block_stack(setting: Setting) -> kp.Transformer:
    """Causal uniform attention and an MLP."""
    activation = shaped(setting.activation, setting.depth)
    norm = None if setting.norm == "none" else setting.norm
    attention = kp.uniform(setting.length, causal=True)
    return kp.Transformer(attention, setting.depth, mlp=kp.MLP(activation), norm=norm)


def tempered(network: kp.Transformer, beta: float, tau: float) -> kp.Transformer:
    """The network with branches of weight ``β`` and its logits times ``τ``."""
    scaled = with_branches(network, beta)
    own = kp.Gains() if network.gains is None else network.gains
    gains = replace(own, temperature=own.temperature * tau)
    return scaled.replaced(gains=gains)


def _numbers(network: kp.Transformer, kernel: np.ndarray) -> dict[str, float]:
    # A final norm leaves the correlations as they are, and hides what became of the diagonal.
    evolution = kp.propagate(without_final_norm(network), kernel, "last")
    norms = kp.gradient_norms(network, kernel)
    value = np.sqrt(np.asarray(norms.value))
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.sqrt(np.asarray(norms.query)) / value if norms.query is not None else np.full(1, np.nan)
        spread = float(value.max() / value.min())
        growth = evolution.diagonal[-1] / evolution.diagonal[0]
    return {
        "mean_correlation": float(evolution.mean_correlation[-1]),
        "growth": float(growth[np.argmax(np.abs(np.log(np.maximum(growth, 1e-300))))]),
        "spread": spread,
        "ratio_least": float(ratio.min()),
        "ratio_most": float(ratio.max()),
    }


def _is_random(network: kp.Transformer) -> bool:
    return getattr(network.attention, "is_random", False)


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]
