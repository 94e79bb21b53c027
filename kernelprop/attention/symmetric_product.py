"""A product of two matrices that is known to be symmetric."""

import itertools

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from kernelprop.precision import full_product

# Measured: shorter ones lose more by smaller products than they save.
SHORTEST = 1024
PARTS = 4


def symmetric_product(left: Float[Array, "T d"], right: Float[Array, "d T"]) -> Float[Array, "T T"]:
    """``left right``, symmetric: of a large one the blocks below the diagonal are computed and mirrored.

    With four blocks a side that is 10/16 of the operations.
    """
    length = len(left)
    if length < SHORTEST:
        return full_product(left, right)
    ends = [length * part // PARTS for part in range(PARTS + 1)]
    whole = jnp.zeros((length, length), left.dtype)
    for start, stop in itertools.pairwise(ends):
        rows = full_product(left[start:stop], right[:, :stop])
        whole = lax.dynamic_update_slice(whole, rows, (start, 0))
        if start:
            whole = lax.dynamic_update_slice(whole, rows[:, :start].T, (0, start))
    return whole
