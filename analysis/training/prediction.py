"""What is known of an arm before it trains: its correlation at depth, and how its gradients are spread over layers."""

from functools import cache
from typing import NamedTuple

import numpy as np

import kernelprop as kp
from analysis.training.arms import ARMS
from analysis.training.studies import DATA_SEED, DEPTH, LENGTH
from kernelprop.training import markov


class Prediction(NamedTuple):
    """Closed form, at initialisation and infinite width, for the mean kernel of the Markov source.

    Attributes:
        correlation: the mean correlation of two positions behind the last layer.
        spread: ``log₁₀`` of the largest over the smallest squared gradient norm of the values over the layers.
        imbalance: ``log₁₀`` of the query gradients' squared norms over the values', summed over layers; NaN where
            there are no queries.
    """

    correlation: float
    spread: float
    imbalance: float


@cache
def predict(arm: str, depth: int = DEPTH, length: int = LENGTH) -> Prediction:
    """Propagate the source's own kernel, ``P(x_i = x_j)`` times the embeddings' variance, forward and back."""
    model = ARMS[arm].network(length, depth)
    kernel = ARMS[arm].embedding_scale ** 2 * markov(seed=DATA_SEED).agreement(length)
    evolution = kp.propagate(model, kernel, keep="last")
    norms = kp.gradient_norms(model, kernel)
    value, query = np.asarray(norms.value), np.asarray(norms.query)
    with np.errstate(divide="ignore", invalid="ignore"):
        spread = float(np.log10(value.max() / value.min()))
        imbalance = float(np.log10(query.sum() / value.sum()))
    return Prediction(float(evolution.mean_correlation[-1]), spread, imbalance)
