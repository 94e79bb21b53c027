"""What the devices say to each other: rows of a matrix gathered, transposed and multiplied, a part at a time."""

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

AXIS = "rows"


def own(vector: Float[Array, "... T"], rows: int) -> Float[Array, "... rows"]:
    """The entries of a vector that all devices hold which belong to this device's rows."""
    return lax.dynamic_slice_in_dim(vector, lax.axis_index(AXIS) * rows, rows, axis=-1)


def gathered(part: Float[Array, "... rows"]) -> Float[Array, "... T"]:
    """A vector of which each device has made the entries of its rows."""
    return lax.all_gather(part, AXIS, axis=part.ndim - 1, tiled=True)


def summed(part: Float[Array, "..."]) -> Float[Array, "..."]:
    """The sum over the devices."""
    return lax.psum(part, AXIS)


def own_diagonal(rows: Float[Array, "rows T"]) -> Float[Array, "rows"]:
    """The diagonal entries among this device's rows."""
    here = jnp.arange(len(rows))[:, None] + lax.axis_index(AXIS) * len(rows)
    return jnp.take_along_axis(rows, here, axis=1)[:, 0]


def on_own_diagonal(rows: Float[Array, "rows T"], diagonal: Float[Array, "rows"]) -> Float[Array, "rows T"]:
    """This device's rows with other diagonal entries."""
    here = jnp.arange(len(rows))[:, None] + lax.axis_index(AXIS) * len(rows)
    return jnp.where(jnp.arange(rows.shape[1])[None, :] == here, diagonal[:, None], rows)


def transposed(rows: Float[Array, "rows T"]) -> Float[Array, "rows T"]:
    """The rows of the transpose: every device sends each other one a block, ``(P − 1)/P`` of what it holds."""
    return lax.all_to_all(rows, AXIS, split_axis=1, concat_axis=0, tiled=True).T


def ring_product(rows: Float[Array, "rows T"], others: Float[Array, "rows T"]) -> Float[Array, "rows T"]:
    """The rows of ``X Yᵀ``, both cut by rows: ``Y``'s go round, one device's at a time."""
    count = lax.axis_size(AXIS)
    forward = [(device, (device + 1) % count) for device in range(count)]
    mine = lax.axis_index(AXIS)

    def step(number: Array, carry: tuple[Array, Array]) -> tuple[Array, Array]:
        total, travelling = carry
        block = jnp.matmul(rows, travelling.T, precision=lax.Precision.HIGHEST)
        # After n steps this device holds the rows of the one n places behind it.
        start = ((mine - number) % count) * len(travelling)
        total = lax.dynamic_update_slice_in_dim(total, block, start, axis=1)
        return total, lax.ppermute(travelling, AXIS, forward)

    total, _ = jax.lax.fori_loop(0, count, step, (jnp.zeros_like(rows), others))
    return total
