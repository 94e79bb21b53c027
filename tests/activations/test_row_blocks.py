"""A map over entries in blocks of rows is the map."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from kernelprop.activations import row_blocks


def entry(q: jax.Array, c: jax.Array) -> jax.Array:
    return q * c**3


# One block, whole blocks, a last block that is filled up, blocks of a single row.
@pytest.mark.parametrize(("length", "entries"), [(1, 64), (4, 8), (7, 21), (5, 2), (11, 44)])
def test_every_row_is_mapped_once_and_so_is_its_change(monkeypatch, length, entries):
    monkeypatch.setattr(row_blocks, "ENTRIES", entries)
    rng = np.random.default_rng(length)
    q, c = rng.random(length).astype("float32"), rng.random((length, length)).astype("float32")
    change = rng.random((length, length)).astype("float32")

    def blocked(c: jax.Array) -> jax.Array:
        return row_blocks.in_row_blocks(entry, jnp.asarray(q), c)

    value, moved = jax.jvp(blocked, (jnp.asarray(c),), (jnp.asarray(change),))
    np.testing.assert_allclose(value, q[:, None] * c**3, rtol=1e-6)
    np.testing.assert_allclose(moved, q[:, None] * 3 * c**2 * change, rtol=1e-6)
    back = jax.grad(lambda c: jnp.vdot(blocked(c), change))(jnp.asarray(c))
    np.testing.assert_allclose(back, q[:, None] * 3 * c**2 * change, rtol=1e-6)
