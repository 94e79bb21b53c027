"""``dual`` and ``dual_derivative``: the kernels of an activation at numbers that a user hands in."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array

from kernelprop import door
from kernelprop.activations.base import Activation
from kernelprop.activations.convergence import refuse_unresolved
from kernelprop.activations.expectation import indexed_expectation
from kernelprop.activations.numeric import Numeric
from kernelprop.activations.registry import activation
from kernelprop.precision import in_double

Kernel = Callable[[Any, Any, Any], Any]


def dual(fn: str | Activation | Callable[[Any], Any], kinks: Sequence[float] = ()) -> Kernel:
    """``K(q1, q2, c) = E[phi(u) phi(v)]`` for ``(u, v) ~ N(0, [[q1, r], [r, q2]])``, ``r = c sqrt(q1 q2)``.

    Args:
        fn: an activation: a name, a shaped activation or a function on arrays.
        kinks: where a function given as a callable has kinks or jumps. Those whose surroundings are smooth are
            found without being declared; so is every feature wider than about 1/2000 near 0.

    Returns:
        A function of ``q1``, ``q2`` and the correlation ``c``, broadcast against each other. Numbers and arrays
        are checked, computed in float64 and come back as numpy float64, to ``1e-10 sqrt(K_ii K_jj)``. JAX tracers
        are taken as they are, in their own precision, and can be differentiated; gradients are finite at
        ``c = +-1``.

    Raises:
        ValueError: for a negative variance or a correlation beyond +-1 by more than rounding, with its index;
            for a function that can't be resolved, with what to declare.

    Source: Mehler's expansion, Cho and Saul (2009), Williams (1996), Tsuchida et al. (arXiv 2002.08517).

    >>> dual("relu")(1.0, 1.0, [0.0, 1.0])
    array([0.15915494, 0.5       ])
    >>> dual("relu")(1.0, 1.0, 1.1)
    Traceback (most recent call last):
    ValueError: c: 1.1 is not a correlation; it must lie in [-1, 1]
    """
    return partial(_at, activation(fn, kinks), False)


def dual_derivative(fn: str | Activation | Callable[[Any], Any], kinks: Sequence[float] = ()) -> Kernel:
    """``Kdot(q1, q2, c) = E[phi'(u) phi'(v)]``, which is ``dK/dc`` over ``sqrt(q1 q2)``.

    Arguments, result and errors are those of ``dual``; a function that jumps is refused, and so is one whose
    derivative as JAX computes it is not the slope of its values.

    >>> dual_derivative("relu")(1.0, 1.0, [0.0, 1.0])
    array([0.25, 0.5 ])
    """
    return partial(_at, activation(fn, kinks), True)


def _at(phi: Activation, derivative: bool, q1: Any, q2: Any, c: Any) -> Any:
    if any(isinstance(value, Tracer) for value in (q1, q2, c)):
        return _traced(phi, derivative, q1, q2, c)
    arrays = np.broadcast_arrays(_variance(q1, "q1"), _variance(q2, "q2"), _correlation(c))
    flat = [array.ravel() for array in arrays]
    values = _numeric(phi, derivative, *flat) if isinstance(phi, Numeric) else _closed(phi, derivative, *flat)
    return values.reshape(arrays[0].shape)[()]


def _traced(phi: Activation, derivative: bool, q1: Any, q2: Any, c: Any) -> Array:
    dtype = jnp.result_type(float, *(value for value in (q1, q2, c) if isinstance(value, jax.Array)))
    shape = jnp.broadcast_shapes(*(jnp.shape(value) for value in (q1, q2, c)))
    arrays = (jnp.broadcast_to(jnp.asarray(value, dtype), shape) for value in (q1, q2, c))
    return phi.dual_derivative(*arrays) if derivative else phi.dual(*arrays)


def _variance(value: Any, name: str) -> np.ndarray:
    array = door.real_array(value, name).astype(np.float64)
    if (array < 0).any():
        raise ValueError(f"{name}: {_entry(array, array < 0)} is negative; a variance can't be")
    return array


def _correlation(value: Any) -> np.ndarray:
    given = door.real_array(value, "c")
    array = given.astype(np.float64)
    beyond = np.abs(array) > 1 + 16 * np.finfo(given.dtype).eps
    if beyond.any():
        raise ValueError(f"c: {_entry(array, beyond)} is not a correlation; it must lie in [-1, 1]")
    return np.clip(array, -1, 1)


def _entry(array: np.ndarray, bad: np.ndarray) -> str:
    index = tuple(int(i) for i in np.argwhere(bad)[0])
    return f"entry {index}, {float(array[index])!r}," if index else f"{float(array)!r}"


def _closed(phi: Activation, derivative: bool, q1: np.ndarray, q2: np.ndarray, c: np.ndarray) -> np.ndarray:
    size = _padded_size(len(c))
    return _closed_form(phi, derivative, *(np.pad(a, (0, size - len(c))) for a in (q1, q2, c)))[: len(c)]


@in_double
@eqx.filter_jit
def _closed_form(phi: Activation, derivative: bool, q1: Any, q2: Any, c: Any) -> Any:
    return phi.dual_derivative(q1, q2, c) if derivative else phi.dual(q1, q2, c)


def _numeric(phi: Numeric, derivative: bool, q1: np.ndarray, q2: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Expand once for each variance that occurs, then go over the entries."""
    if not len(c):
        return np.zeros(0)
    f = phi.integrand.derivative if derivative else phi.integrand
    (first, i), (second, j) = (np.unique(q, return_inverse=True) for q in (q1, q2))
    refuse_unresolved(f, np.union1d(first, second))
    size = _padded_size(len(c), 64)
    padded = [np.pad(a, (0, size - len(c))) for a in (i, j, c)]
    variances = [np.pad(q, (0, _padded_size(len(q)) - len(q)), mode="edge") for q in (first, second)]
    return _indexed(f, f, *variances, *padded)[: len(c)]


_indexed = in_double(jax.jit(indexed_expectation, static_argnums=(0, 1)))


def _padded_size(count: int, least: int = 8) -> int:
    """The next power of two, so that few shapes are compiled."""
    return max(least, 1 << (count - 1).bit_length())
