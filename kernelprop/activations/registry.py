"""The one list of named activations, and what else may stand for an activation."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from kernelprop import door
from kernelprop.activations.base import Activation
from kernelprop.activations.error_functions import GELU, Erf
from kernelprop.activations.numeric import Numeric
from kernelprop.activations.polynomials import Linear, Square
from kernelprop.activations.rectifiers import LeakyReLU, ReLU
from kernelprop.activations.trigonometric import Cos, Sin

ACTIVATIONS: dict[str, Activation] = {
    "linear": Linear(),
    "square": Square(),
    "relu": ReLU(),
    "leaky_relu": LeakyReLU(),
    "erf": Erf(),
    "gelu": GELU(),
    "gelu_tanh": Numeric(partial(jax.nn.gelu, approximate=True), "gelu_tanh"),
    "sin": Sin(),
    "cos": Cos(),
    "tanh": Numeric(jnp.tanh, "tanh"),
    "sigmoid": Numeric(jax.nn.sigmoid, "sigmoid"),
    "softplus": Numeric(jax.nn.softplus, "softplus"),
    "silu": Numeric(jax.nn.silu, "silu"),
}
ALIASES = {"swish": "silu", "identity": "linear"}


def activation(fn: str | Activation | Callable[[Any], Any], kinks: Sequence[float] = ()) -> Activation:
    """Return the activation that a name, an activation or a function on arrays stands for.

    Args:
        fn: a name (``"gelu"`` is the exact form, ``"gelu_tanh"`` the tanh form), an ``Activation``, shaped ones
            included, or an elementwise function on arrays that JAX can trace.
        kinks: where a function given as a callable has kinks or jumps; sampling finds those on its own whose
            surroundings are smooth.

    Raises:
        ValueError: for an unknown name, or kinks of an activation that knows its own.

    >>> activation("swish").name
    'silu'
    >>> activation("rleu")
    Traceback (most recent call last):
    ValueError: activation: 'rleu' is unknown; the names are cos, erf, gelu, gelu_tanh, identity, leaky_relu, linear,
    relu, sigmoid, silu, sin, softplus, square, swish, tanh, or pass a function on arrays
    """
    if isinstance(fn, str | Activation):
        if len(kinks):
            raise ValueError(f"kinks: {tuple(kinks)} was given with an activation that knows its own")
        return fn if isinstance(fn, Activation) else _named(fn)
    if not callable(fn):
        raise ValueError(f"activation: a name or a function on arrays is wanted, {fn!r} was given")
    places = tuple(sorted({door.real_number(kink, "kinks") for kink in kinks}))
    return Numeric(_hashable(fn), getattr(fn, "__name__", type(fn).__name__), places)


def _hashable(fn: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """What was seen of a function is kept under it; one that can't be a key is wrapped in one that can."""
    try:
        hash(fn)
    except TypeError:
        return lambda x: fn(x)
    return fn


def _named(name: str) -> Activation:
    found = ACTIVATIONS.get(ALIASES.get(name, name))
    if found is None:
        names = ", ".join(sorted({*ACTIVATIONS, *ALIASES}))
        raise ValueError(f"activation: {name!r} is unknown; the names are {names}, or pass a function on arrays")
    return found
