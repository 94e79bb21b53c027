"""Means over independent runs of a random computation, with their standard errors."""

from collections.abc import Callable
from typing import TypeVar

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Key

Numbers = TypeVar("Numbers")


def mean_over_chains(run: Callable[[Array], Numbers], key: Key[Array, ""], chains: int) -> tuple[Numbers, Numbers]:
    """``mean`` and ``stderr = sqrt(Σ (x − mean)² / (n − 1) / n)`` of a pytree of floating-point numbers.

    The runs follow one another and are summed up as they come (Welford's recurrence), so that the memory is that of
    three of them, and runs that agree have a standard error of exactly 0.

    Args:
        run: from a key to numbers; chain ``n`` gets ``fold_in(key, n)``.
        key: of all chains.
        chains: their number ``n``, at least 2.
    """
    zeros = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), jax.eval_shape(run, key))

    def add(total: tuple[Numbers, Numbers], chain: Array) -> tuple[tuple[Numbers, Numbers], None]:
        mean, squares = total
        value = run(jax.random.fold_in(key, chain))
        new_mean = jax.tree.map(lambda m, x: m + (x - m) / (chain + 1).astype(x.dtype), mean, value)
        squares = jax.tree.map(lambda s, x, old, new: s + (x - old) * (x - new), squares, value, mean, new_mean)
        return (new_mean, squares), None

    (mean, squares), _ = lax.scan(add, (zeros, zeros), jnp.arange(chains))
    return mean, jax.tree.map(lambda s: jnp.sqrt(s / ((chains - 1) * chains)), squares)
