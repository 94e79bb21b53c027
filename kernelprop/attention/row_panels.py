"""Rows of a kernel, a panel at a time: what is made of a panel is made in the cache."""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

# Measured: shorter kernels stay in the cache whole, and larger panels don't.
WHOLE = 1024
PANEL = 128

PanelMap = Callable[[Array, Float[Array, "rows d"], Any], tuple[Float[Array, "rows d"], Any]]


def panel_rows(length: int) -> int:
    """The rows of a panel; all of them in a kernel that is short."""
    return length if length <= WHOLE else PANEL


def through_panels(
    function: PanelMap, x: Float[Array, "T d"], state: Any, backwards: bool = False
) -> Float[Array, "T d"]:
    """``rows, state = function(first row, rows, state)`` for one panel after the other, the last one first on request.

    Where one panel is all, there is no state: it is None. So it is on an accelerator, where a panel is too small to be
    worth its launches.

    Panels after the last row are filled with zeros. What a panel becomes is written where it was read, so that the
    whole takes the memory of one kernel and every entry goes through the cache once.
    """
    length, rows = len(x), panel_rows(len(x))

    def at_once(x: Array) -> Array:
        return function(jnp.zeros((), int), x, None)[0]

    if rows == length:
        return at_once(x)
    count = -(-length // rows)

    def panel(number: Array, carry: tuple[Array, Any]) -> tuple[Array, Any]:
        whole, state = carry
        first = rows * (count - 1 - number if backwards else number)
        here, state = function(first, lax.dynamic_slice_in_dim(whole, first, rows), state)
        return lax.dynamic_update_slice_in_dim(whole, here, first, 0), state

    def by_panels(x: Array) -> Array:
        padded = jnp.pad(x, ((0, count * rows - length), (0, 0)))
        return lax.fori_loop(0, count, panel, (padded, state))[0][:length]

    return lax.platform_dependent(x, cpu=by_panels, default=at_once)


def action_on_both_sides(
    act: Callable[[Array], Array], act_on_rows: Callable[[Array], Array], kernel: Float[Array, "T T"]
) -> Float[Array, "T T"]:
    """``A S Aᵀ`` from ``act(X) = X Aᵀ``, on some rows of ``S``, and ``act_on_rows(X) = A X``, on some columns."""
    length, columns = len(kernel), panel_rows(len(kernel))
    if columns == length:
        return act_on_rows(act(kernel))
    count = -(-length // columns)

    def panel(number: Array, whole: Array) -> Array:
        here = lax.dynamic_slice_in_dim(whole, columns * number, columns, axis=1)
        return lax.dynamic_update_slice_in_dim(whole, act_on_rows(here), columns * number, 1)

    def by_panels(right: Array) -> Array:
        padded = jnp.pad(right, ((0, 0), (0, count * columns - length)))
        return lax.fori_loop(0, count, panel, padded)[:, :length]

    right = through_panels(lambda first, here, state: (act(here), state), kernel, None)
    # JAX hashes what it chooses from; a bound method of a module can't be.
    return lax.platform_dependent(right, cpu=by_panels, default=lambda right: act_on_rows(right))
