"""One registry of attention operators; many behaviours run over it."""

import numpy as np

import kernelprop as kp
from kernelprop.attention.sliding_window import sliding_window

LENGTH = 11


def _random(*shape: int) -> np.ndarray:
    return np.random.default_rng(7).normal(size=shape)


OPERATORS = {
    "identity": lambda: kp.identity(LENGTH),
    "uniform": lambda: kp.uniform(LENGTH),
    "causal uniform": lambda: kp.uniform(LENGTH, causal=True),
    "sliding window": lambda: sliding_window(LENGTH, 3),
    "sliding window on both sides": lambda: sliding_window(LENGTH, 3, causal=False),
    "dense": lambda: kp.dense(_random(LENGTH, LENGTH)),
    "dense stack": lambda: kp.dense(_random(3, LENGTH, LENGTH)),
    "dense heads": lambda: kp.dense(_random(2, 3, LENGTH, LENGTH)),
    "espa": lambda: kp.espa(LENGTH, 3, gamma=0.1),
    "espa from a given kernel": lambda: kp.espa(LENGTH, 3, gamma=0.1, gamma0=0.7),
    "espa rising": lambda: kp.espa(LENGTH, gammas=[0.1, 0.5], require_nonnegative=False),
    "espa symmetric": lambda: kp.espa(LENGTH, 2, gamma=0.1, gamma0=2.0, causal=False),
    "uspa": lambda: kp.uspa(LENGTH, 3),
    "uspa from a given kernel": lambda: kp.uspa(LENGTH, 3, rho0=0.3),
    "uspa falling": lambda: kp.uspa(LENGTH, rhos=[0.6, 0.2], require_nonnegative=False),
    "uspa symmetric": lambda: kp.uspa(LENGTH, 3, causal=False),
    "signal preserving": lambda: kp.signal_preserving([np.eye(LENGTH), 0.5 * np.eye(LENGTH) + 0.5]),
    "mix of uniform": lambda: kp.mix(kp.uniform(LENGTH), 0.9, 0.1),
    "mix of causal uniform": lambda: kp.mix(kp.uniform(LENGTH, causal=True), [0.9, 0.5], [0.1, 0.7]),
    "mix of espa": lambda: kp.mix(kp.espa(LENGTH, 3), 0.3, 0.4),
    "mix of heads": lambda: kp.mix(_random(2, 3, LENGTH, LENGTH), 0.3, 0.4),
    "mix of mix": lambda: kp.mix(kp.mix(kp.identity(LENGTH), 0.3, 0.4), 0.2, -0.4),
    "blocks of espa": lambda: kp.block_diagonal(kp.espa(LENGTH, 2), 3),
    "blocks of heads": lambda: kp.block_diagonal(_random(2, 3, LENGTH, LENGTH), 2),
    "blocks of uniform": lambda: kp.block_diagonal(kp.uniform(LENGTH), 2),
}

STRUCTURED = (
    "identity",
    "uniform",
    "causal uniform",
    "sliding window",
    "espa",
    "espa from a given kernel",
    "uspa",
    "uspa from a given kernel",
    "uspa symmetric",
    "mix of uniform",
    "mix of causal uniform",
    "mix of espa",
    "blocks of espa",
)
