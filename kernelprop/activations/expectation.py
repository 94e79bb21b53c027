"""``E[f(u) g(v)]`` for any two functions, traceable, over pairs of entries or a whole kernel matrix.

Mehler's expansion gives every entry it can; the others, by its known remainder, go through quadrature over the
plane a block at a time, so that memory stays bounded and nothing is spent where there are none. The derivative
rules are exact identities, ``dE/dc = sqrt(q1 q2) E[f'(u) g'(v)]`` and ``dE/dq1 = E[u f'(u) g(v)]/(2 q1)``, so
nothing is singular at ``|c| = 1`` and differentiating can't change a value.
"""

from functools import partial

import jax
import jax.numpy as jnp
from jax import lax
from jax.custom_derivatives import SymbolicZero
from jaxtyping import Array, Bool, Float, Int

from kernelprop.activations.integrand import Integrand
from kernelprop.activations.mehler import Series, mehler_sum, missed_entries, series, strides_needed
from kernelprop.activations.plane import plane_block, plane_values
from kernelprop.activations.quadrature import line_rule
from kernelprop.activations.safe import root

BLOCK = 64


def line_expectation(f: Integrand, q: Float[Array, "..."], power: int = 1) -> Float[Array, "..."]:
    """``E f(u)^power``, elementwise over ``q``."""
    return _line(f, power, q.ravel()).reshape(q.shape)


@partial(jax.custom_jvp, nondiff_argnums=(0, 1))
def _line(f: Integrand, power: int, q: Float[Array, " P"]) -> Float[Array, " P"]:
    x, weights = line_rule(q, f)
    return jnp.sum(weights * f.function(root(q)[:, None] * x) ** power, axis=1)


@_line.defjvp
def _line_jvp(f, power, primals, tangents):
    (q,), (dq,) = primals, tangents
    value = _line(f, power, q)
    if power == 1:
        slope = _line(f.moment, 1, q)
    else:
        x, weights = line_rule(q, f, f.moment)
        u = root(q)[:, None] * x
        slope = 2 * jnp.sum(weights * f.moment.function(u) * f.function(u), axis=1)
    return value, slope * _half_inverse(q) * dq


@partial(jax.custom_jvp, nondiff_argnums=(0, 1))
def matrix_expectation(f: Integrand, g: Integrand, q: Float[Array, " T"], c: Float[Array, "T T"]) -> Array:
    """``E[f(u_i) g(v_j)]`` over ``(T, T)``, the diagonal at correlation 1; symmetric where ``f is g``."""
    size = len(q)
    on_diagonal = jnp.eye(size, dtype=bool)
    reach = jnp.max(jnp.where(on_diagonal, 0, jnp.abs(c)))
    left = series(f, q, reach)
    right = left if f is g else series(g, q, reach)
    missed = missed_entries(c, left.remainder[-1][:, None], right.remainder[-1][None, :]) & ~on_diagonal
    largest = jnp.max(jnp.where(missed | on_diagonal, 0, jnp.abs(c)))
    strides = strides_needed(left, right, largest)
    safe = jnp.where(missed, jnp.zeros_like(c), c)
    value = mehler_sum(strides, left.coefficients, right.coefficients, safe, lambda a, b: a[:, None] * b[None, :])
    value = jnp.where(on_diagonal, _diagonal(f, g, q, left)[:, None], value)
    wanted = jnp.triu(missed) if f is g else missed

    def one_entry(index: Array) -> tuple[Array, Array, Array]:
        i, j = index // size, index % size
        return q[i], q[j], c[i, j]

    found = _over_plane(f, g, wanted.ravel(), one_entry, value.ravel()).reshape(size, size)
    return jnp.where(missed & ~wanted, found.T, found) if f is g else found


@partial(matrix_expectation.defjvp, symbolic_zeros=True)
def _matrix_jvp(f, g, primals, tangents):
    (q, c), (dq, dc) = primals, tangents
    change = jnp.zeros_like(c)
    if _moves(dc):
        roots = root(q)
        change += dc * roots[:, None] * roots[None, :] * matrix_expectation(f.derivative, g.derivative, q, c)
    if _moves(dq):
        each = dq * _half_inverse(q)
        by_first = each[:, None] * matrix_expectation(f.moment, g, q, c)
        by_second = by_first.T if f is g else each[None, :] * matrix_expectation(f, g.moment, q, c)
        change += by_first + by_second
    return matrix_expectation(f, g, q, c), change


@partial(jax.custom_jvp, nondiff_argnums=(0, 1))
def pair_expectation(f: Integrand, g: Integrand, q1: Array, q2: Array, c: Float[Array, " n"]) -> Array:
    """``E[f(u) g(v)]`` for ``n`` triples, each with variances of its own."""
    block = min(BLOCK, len(c))
    if len(c) == block:
        return _pairs_at(f, g, q1, q2, jnp.arange(block), jnp.arange(block), c)
    count = -(-len(c) // block)
    padded = (jnp.pad(a, (0, count * block - len(c)), mode="edge").reshape(count, block) for a in (q1, q2, c))
    index = jnp.arange(block)
    return lax.map(lambda part: _pairs_at(f, g, part[0], part[1], index, index, part[2]), tuple(padded)).ravel()[
        : len(c)
    ]


@partial(pair_expectation.defjvp, symbolic_zeros=True)
def _pair_jvp(f, g, primals, tangents):
    (q1, q2, c), (dq1, dq2, dc) = primals, tangents
    change = jnp.zeros_like(c)
    if _moves(dc):
        change += dc * root(q1) * root(q2) * pair_expectation(f.derivative, g.derivative, q1, q2, c)
    if _moves(dq1):
        change += dq1 * _half_inverse(q1) * pair_expectation(f.moment, g, q1, q2, c)
    if _moves(dq2):
        change += dq2 * _half_inverse(q2) * pair_expectation(f, g.moment, q1, q2, c)
    return pair_expectation(f, g, q1, q2, c), change


def indexed_expectation(
    f: Integrand, g: Integrand, q1: Float[Array, " P"], q2: Float[Array, " R"], i: Array, j: Array, c: Array
) -> Float[Array, " n"]:
    """``E[f(u) g(v)]`` for ``n`` triples ``(q1[i], q2[j], c)`` out of a few variances."""
    return _pairs_at(f, g, q1, q2, i, j, c)


def _pairs_at(f, g, q1: Array, q2: Array, i: Int[Array, " n"], j: Int[Array, " n"], c: Array) -> Array:
    left, right = _both_series(f, g, q1, q2, jnp.max(jnp.abs(c)))
    missed = missed_entries(c, left.remainder[-1][i], right.remainder[-1][j])
    strides = strides_needed(left, right, jnp.max(jnp.where(missed, 0, jnp.abs(c))))
    safe = jnp.where(missed, jnp.zeros_like(c), c)
    value = mehler_sum(strides, left.coefficients, right.coefficients, safe, lambda a, b: a[i] * b[j])
    return _over_plane(f, g, missed, lambda k: (q1[i[k]], q2[j[k]], c[k]), value)


def _both_series(f: Integrand, g: Integrand, q1: Array, q2: Array, reach: Array) -> tuple[Series, Series]:
    """Expand both; one function over all variances at once, which compiles half as much."""
    if f is not g:
        return series(f, q1, reach), series(g, q2, reach)
    both = series(f, jnp.concatenate([q1, q2]), reach)
    split = len(q1)
    return Series(*(part[..., :split] for part in both)), Series(*(part[..., split:] for part in both))


def _over_plane(f: Integrand, g: Integrand, wanted: Bool[Array, " n"], entry, value: Float[Array, " n"]) -> Array:
    """Replace the wanted entries of ``value`` by quadrature over the plane, a block at a time."""
    block = min(plane_block(f, g), len(value))
    total = jnp.sum(wanted)

    def replace(value: Array) -> Array:
        places = jnp.nonzero(wanted, size=len(value), fill_value=len(value))[0]
        places = jnp.pad(places, (0, block), constant_values=len(value))

        def step(state: tuple[Array, Array]) -> tuple[Array, Array]:
            start, value = state
            here = lax.dynamic_slice_in_dim(places, start, block)
            q1, q2, c = entry(jnp.minimum(here, len(value) - 1))
            return start + block, value.at[here].set(plane_values(f, g, q1, q2, c), mode="drop")

        return lax.while_loop(lambda state: state[0] < total, step, (jnp.zeros_like(total), value))[1]

    return lax.cond(total > 0, replace, lambda value: value, value)


def _diagonal(f: Integrand, g: Integrand, q: Array, left: Series) -> Array:
    if f is g:
        return left.square
    x, weights = line_rule(q, f, g)
    u = root(q)[:, None] * x
    return jnp.sum(weights * f.function(u) * g.function(u), axis=1)


def _moves(tangent: Array | SymbolicZero) -> bool:
    return not isinstance(tangent, SymbolicZero)


def _half_inverse(q: Array) -> Array:
    """``1/(2q)``, and 0 at ``q = 0``."""
    positive = q > 0
    return jnp.where(positive, 0.5 / jnp.where(positive, q, 1), 0)
