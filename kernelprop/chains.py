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

    A number that is infinite in a run has an infinite mean. Its standard error is infinite too, for finite ones say
    nothing about it, unless all runs have it infinite. What is NaN in a run is NaN in both.

    Args:
        run: from a key to numbers; chain ``n`` gets ``fold_in(key, n)``.
        key: of all chains.
        chains: their number ``n``, at least 2.
    """
    zeros = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), jax.eval_shape(run, key))

    def add(total: tuple[Numbers, Numbers], chain: Array) -> tuple[tuple[Numbers, Numbers], None]:
        mean, squares = total
        value = run(jax.random.fold_in(key, chain))
        new_mean = jax.tree.map(lambda m, x: _joined(m, x, chain), mean, value)
        squares = jax.tree.map(lambda s, x, old, new: _spread(s, x, old, new, chain), squares, value, mean, new_mean)
        return (new_mean, squares), None

    (mean, squares), _ = lax.scan(add, (zeros, zeros), jnp.arange(chains))
    return mean, jax.tree.map(lambda s: jnp.sqrt(s / ((chains - 1) * chains)), squares)


def _joined(mean: Array, value: Array, chain: Array) -> Array:
    """The mean with one more value in it; from an infinite one no difference can be taken."""
    infinite = jnp.isinf(mean) | jnp.isinf(value)
    return jnp.where(infinite, mean + value, mean + (value - mean) / (chain + 1).astype(value.dtype))


def _spread(squares: Array, value: Array, old: Array, new: Array, chain: Array) -> Array:
    """The sum of squared deviations with one more value in it."""
    agreed = (chain == 0) | (value == old)
    return jnp.where(jnp.isinf(new), jnp.where(agreed, squares, jnp.inf), squares + (value - old) * (value - new))
