"""Mehler's expansion: ``E[f(u) g(v)] = sum_n a_n(q1) b_n(q2) c^n`` with normalised Hermite coefficients.

``a_n(q) = E[f(sqrt(q) x) He_n(x)]/sqrt(n!)``. What the first ``N`` terms miss is at most
``|c|^N sqrt(A B)``, ``A = E f^2 - sum a_n^2`` and ``B`` likewise: known, so that each entry is either within
tolerance or handed to another method.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from kernelprop.activations.integrand import Integrand
from kernelprop.activations.quadrature import TAIL, graded_rule, line_rule
from kernelprop.activations.safe import root
from kernelprop.precision import full_product

TERMS = 256
STRIDE = 8
ROWS = 8
# Where products do the work.
LONG_STRIDE = 16
MANY_ROWS = 64


class Series(NamedTuple):
    """Coefficients of a function at ``P`` variances, and what is left out."""

    coefficients: Float[Array, "N P"]
    square: Float[Array, " P"]  # E f^2; NaN where the rule cuts too much of it off
    remainder: Float[Array, "N P"]  # root of the part of E f^2 that the first n + 1 terms miss, relative


def series(function: Integrand, q: Float[Array, " P"], largest: Float[Array, ""]) -> Series:
    """Expand ``f(sqrt(q_i) x)`` for every ``i``; one expansion serves all where the variances agree.

    Coefficients that no entry with ``|c| <= largest`` needs are left out, as zeros; the remainder counts them.
    """
    coefficients, square = _expand_all(function, q, largest)
    positive = square > 0
    return Series(coefficients, square, jnp.where(positive, _remainder(coefficients, square), 0))


def tolerance(dtype: jnp.dtype) -> float:
    """What an entry may miss relative to ``sqrt(E f^2 E g^2)``; rounding of the remainder stays below it."""
    return 2e-13 if dtype == jnp.float64 else 1e-5


def enough(dtype: jnp.dtype) -> float:
    """What the terms left out may come to; errors add up over a deep network, and a few terms more cost little."""
    return 16 * float(jnp.finfo(dtype).eps)


def missed_entries(c: Array, left: Array, right: Array) -> Bool[Array, "..."]:
    """Say where all terms together aren't enough; ``left`` and ``right`` are the last remainders."""
    return jnp.abs(c) ** TERMS * left * right > tolerance(c.dtype)


def strides_needed(left: Series, right: Series, largest: Float[Array, ""]) -> Int[Array, ""]:
    """How many strides of terms bring every entry with ``|c| <= largest`` within tolerance."""
    power = largest ** jnp.arange(1, TERMS + 1).astype(largest.dtype)
    bound = power * left.remainder.max(axis=1) * right.remainder.max(axis=1)
    within = bound <= enough(largest.dtype)
    terms = jnp.where(within.any(), jnp.argmax(within) + 1, TERMS)
    return -(-terms // STRIDE)


def mehler_sum(strides: Array, left: Array, right: Array, c: Array, pair: Callable) -> Array:
    """Horner's rule over ``strides`` strides; ``pair(a, b)`` spreads the n-th coefficients over the entries."""

    def stride(k: Array, total: Array) -> Array:
        start = (strides - 1 - k) * STRIDE
        a = lax.dynamic_slice_in_dim(left, start, STRIDE)
        b = lax.dynamic_slice_in_dim(right, start, STRIDE)
        for n in reversed(range(STRIDE)):
            total = total * c + pair(a[n], b[n])
        return total

    return lax.fori_loop(0, strides, stride, jnp.zeros_like(c))


def _remainder(coefficients: Float[Array, "N P"], square: Float[Array, " P"]) -> Float[Array, "N P"]:
    return _left(jnp.cumsum(coefficients**2 / jnp.where(square > 0, square, 1)[None, :], axis=0))


def _left(kept: Float[Array, "..."]) -> Float[Array, "..."]:
    # The sum is 1 only to rounding: what it misses is known no better, and counts in full beside a slow series.
    return jnp.sqrt(jnp.maximum(1 - kept, 8 * jnp.finfo(kept.dtype).eps))


def _expand_all(function: Integrand, q: Float[Array, " P"], largest: Float[Array, ""]) -> tuple[Array, Array]:
    """Expand a few variances at a time, and only the first few where all agree."""
    expand, most = (_expand_by_one_rule, MANY_ROWS) if function.graded else (_expand, ROWS)
    rows = min(most, len(q))
    blocks = -(-len(q) // rows)
    agree = jnp.all(q == q[0])
    padded = jnp.pad(q, (0, blocks * rows - len(q)), mode="edge")

    def block(k: Array, filled: tuple[Array, Array]) -> tuple[Array, Array]:
        coefficients, square = expand(function, lax.dynamic_slice_in_dim(padded, k * rows, rows), largest)
        return (
            lax.dynamic_update_slice_in_dim(filled[0], coefficients, k * rows, 1),
            lax.dynamic_update_slice_in_dim(filled[1], square, k * rows, 0),
        )

    empty = (jnp.zeros((TERMS, len(padded)), q.dtype), jnp.zeros_like(padded))
    coefficients, square = lax.fori_loop(0, jnp.where(agree, 1, blocks), block, empty)
    return (
        jnp.where(agree, coefficients[:, :1], coefficients)[:, : len(q)],
        jnp.where(agree, square[:1], square)[: len(q)],
    )


def _expand(function: Integrand, q: Float[Array, " P"], largest: Float[Array, ""]) -> tuple[Array, Array]:
    """Coefficients by a rule for each variance, as many as entries with ``|c| <= largest`` need."""
    x, weights = line_rule(q, function)
    values = function.function(root(q)[:, None] * x)
    weighted = weights * values
    number = jnp.arange(TERMS).astype(q.dtype)
    rise, fall = 1 / jnp.sqrt(number + 1), jnp.sqrt(number / (number + 1))
    ones = lax.optimization_barrier(jnp.ones_like(x[0]))

    def stride(start: Array, state: tuple[Array, Array]) -> tuple[tuple[Array, Array], Float[Array, "S P"]]:
        before, hermite = state
        up, down = (lax.dynamic_slice_in_dim(factors, start, STRIDE) for factors in (rise, fall))
        # Weighted Hermite polynomials; their sums as one product, which is several times faster than reductions.
        found = []
        for n in range(STRIDE):
            found.append(hermite)
            before, hermite = hermite, (x * up[n]) * hermite - down[n] * before
        return (before, hermite), full_product(jnp.stack(found), ones)

    mass = weighted * values
    square = _resolved(jnp.sum(mass, axis=1), jnp.sum(jnp.where(jnp.abs(x) > TAIL, mass, 0), axis=1))
    return _strides(stride, (jnp.zeros_like(x), weighted), STRIDE, square, largest), square


def _expand_by_one_rule(function: Integrand, q: Float[Array, " P"], largest: Float[Array, ""]) -> tuple[Array, Array]:
    """Coefficients by one rule for all variances: products with a table of Hermite polynomials."""
    x, weights, table = (jnp.asarray(numbers, q.dtype) for numbers in _table())
    values = function.function(x[:, None] * root(q)[None, :])

    def stride(start: Array, nothing: tuple[()]) -> tuple[tuple[()], Float[Array, "S P"]]:
        return nothing, full_product(lax.dynamic_slice_in_dim(table, start, LONG_STRIDE), values)

    square = _resolved(*full_product(jnp.stack([weights, jnp.where(jnp.abs(x) > TAIL, weights, 0)]), values * values))
    return _strides(stride, (), LONG_STRIDE, square, largest), square


def _resolved(square: Float[Array, " P"], beyond: Float[Array, " P"]) -> Float[Array, " P"]:
    """``E f^2``, or NaN where its share in the tails says that the rule leaves something out behind its ends."""
    share = 1e-11 if square.dtype == jnp.float64 else 1e-6
    return jnp.where(beyond <= share * square, square, jnp.nan)


def _strides(
    stride: Callable, state: Any, length: int, square: Float[Array, " P"], largest: Float[Array, ""]
) -> Float[Array, "N P"]:
    """Coefficients a stride at a time, until the rest is beyond what entries with ``|c| <= largest`` need."""

    def step(carry: tuple[Array, Any, Array, Array, Array]) -> tuple[Array, Any, Array, Array, Array]:
        start, state, coefficients, kept, _ = carry
        state, found = stride(start, state)
        coefficients = lax.dynamic_update_slice_in_dim(coefficients, found, start, 0)
        kept += jnp.sum(found * found, axis=0)
        left = jnp.max(_left(kept / jnp.where(square > 0, square, 1)))
        # The other function of a pair may have all of itself in what is left; and an entry that is no number must not
        # end the series for its neighbours.
        wanted = ~(largest ** (start + length).astype(square.dtype) * left <= enough(square.dtype))
        return start + length, state, coefficients, kept, wanted

    empty = jnp.zeros((TERMS, len(square)), square.dtype)
    carry = (jnp.zeros((), int), state, empty, jnp.zeros_like(square), jnp.array(True))
    return lax.while_loop(lambda carry: (carry[0] < TERMS) & carry[-1], step, carry)[2]


@lru_cache(maxsize=1)
def _table() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Nodes, weights, and the weighted Hermite polynomials at the nodes, ``(N, n)``."""
    x, weights = graded_rule()
    rows = [weights, x * weights]
    for n in range(1, TERMS - 1):
        rows.append((x * rows[n] - np.sqrt(n) * rows[n - 1]) / np.sqrt(n + 1))
    return x, weights, np.stack(rows)
