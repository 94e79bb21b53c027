"""Gradient norms of sampled networks at several widths, and their limit at infinite width."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

import kernelprop as kp
from kernelprop.finite.width_law import WidthLaw, fit_width_law


class Rows(NamedTuple):
    """Rows divided by ``d²``: means and standard errors ``(widths, rows)``, and the law ``limit + slope/d``."""

    widths: np.ndarray
    mean: np.ndarray
    stderr: np.ndarray
    law: WidthLaw
    draws: int


def measured(
    model: kp.Transformer, kernel: np.ndarray, names: Sequence[str], widths: Sequence[int], draws: int, seed: int
) -> Rows:
    """Draw networks of each width; the rows are the names' layers, one after the other."""
    means, errors = [], []
    for width in widths:
        found = kp.simulate(model, kernel, width=width, draws=draws, key=seed + width, gradients=True)
        estimates = [getattr(found, name) for name in names]
        means.append(np.concatenate([one.mean for one in estimates]) / width**2)
        errors.append(np.concatenate([one.stderr for one in estimates]) / width**2)
    sizes, mean, stderr = np.array(widths, np.float64), np.stack(means), np.stack(errors)
    return Rows(sizes, mean, stderr, fit_width_law(sizes, mean, stderr, draws * len(widths)), draws)


def labels(names: Sequence[str], depth: int) -> list[str]:
    """One label a row."""
    return [f"{name.replace('_', ' ')}, layer {layer + 1}" for name in names for layer in range(depth)]


def predicted(norms: kp.GradientNorms, names: Sequence[str]) -> np.ndarray:
    """The rows of a prediction in the same order."""
    return np.concatenate([getattr(norms, name) for name in names])
