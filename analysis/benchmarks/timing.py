"""Timing side by side: the contenders take turns, so that a noisy machine disturbs all of them alike."""

import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any

import jax


def medians(contenders: Mapping[str, Callable[[], Any]], repeats: int) -> dict[str, float]:
    """Return the median seconds of each contender over ``repeats`` rounds, after one round that compiles."""
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for measured in [False] + [True] * repeats:
        for name, run in contenders.items():
            start = time.perf_counter()
            jax.block_until_ready(run())
            if measured:
                seconds[name].append(time.perf_counter() - start)
    return {name: statistics.median(values) for name, values in seconds.items()}
