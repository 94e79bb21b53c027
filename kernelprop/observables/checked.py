"""The door of the observables: numpy arrays are checked, JAX arrays are trusted."""

from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec

import jax
import jax.numpy as jnp
import numpy as np

from kernelprop import door
from kernelprop.precision import in_double

P = ParamSpec("P")
Formula = Callable[Concatenate[Any, P], Any]


def of_kernels(formula: Formula[P]) -> Formula[P]:
    """Let a JAX formula of a kernel ``(…, T, T)`` serve numpy callers too, who are checked at the door.

    The eigenvalue test is left out: it would cost more than most of the numbers asked for.
    """
    return _served(formula, lambda value: door.kernel(value, eigenvalue_test=False))


def of_arrays(formula: Formula[P]) -> Formula[P]:
    """The same for any array of finite numbers: matrices that need not be kernels, spectra."""
    return _served(formula, lambda value: door.real_array(value, "array"))


def _served(formula: Formula[P], check: Callable[[Any], np.ndarray]) -> Formula[P]:
    # One compilation a shape, rather than one for every operation of the formula.
    compiled = in_double(jax.jit(formula))

    @wraps(formula)
    def served(first: Any, /, *args: P.args, **kwargs: P.kwargs) -> Any:
        if any(isinstance(leaf, jax.Array) for leaf in jax.tree.leaves((first, args, kwargs))):
            return formula(jnp.asarray(first), *args, **kwargs)
        return compiled(check(first), *args, **kwargs)

    return served
