"""Products of reflections in blocks, against the reflections one by one."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from kernelprop.finite.reflections import BLOCKS, COLUMNS, reflected


def one_by_one(gaussian):
    """``H_1 … H_m`` on the first columns of the identity, and the signs, as the definition has them."""
    rows, columns = gaussian.shape
    factor = np.eye(rows, columns)
    for k in reversed(range(columns)):
        below = np.concatenate([np.zeros(k), gaussian[k:, k]])
        below[k] += np.copysign(np.linalg.norm(below), below[k])
        factor = factor - 2 * np.outer(below, below @ factor) / (below @ below)
    return factor * np.copysign(1.0, np.diagonal(gaussian))


# Within a block, over its edge, and where the number of blocks and not their size is bounded.
@pytest.mark.parametrize(
    "shape", [(1, 1), (7, 4), (COLUMNS + 1, COLUMNS + 1), (200, 130), (1100, COLUMNS * BLOCKS + 6)]
)
def test_blocks_of_reflections_are_the_reflections(shape):
    gaussian = np.random.default_rng(0).normal(size=shape)
    with jax.enable_x64(True):
        found = np.asarray(jax.jit(reflected)(jnp.asarray(gaussian)))
    np.testing.assert_allclose(found.T @ found, np.eye(shape[1]), atol=1e-13)
    np.testing.assert_allclose(found, one_by_one(gaussian), atol=1e-12)


def test_the_law_is_that_of_the_orthogonal_group():
    """``E tr² = 1``, ``E tr(Q²) = 1``, ``E tr⁴ = 3`` over O(3); without the signs the trace has a mean of its own."""
    count = 40_000
    gaussian = np.random.default_rng(1).normal(size=(count, 3, 3))
    with jax.enable_x64(True):
        found = np.asarray(jax.jit(jax.vmap(reflected))(jnp.asarray(gaussian)))
    trace = np.trace(found, axis1=1, axis2=2)
    squared = np.trace(found @ found, axis1=1, axis2=2)
    for values, right in ((trace, 0.0), (trace**2, 1.0), (squared, 1.0), (trace**4, 3.0), (np.linalg.det(found), 0.0)):
        assert abs(values.mean() - right) < 4 * values.std(ddof=1) / np.sqrt(count), right
    signs = np.copysign(1.0, np.diagonal(gaussian, axis1=1, axis2=2))
    unsigned = np.trace(found * signs[:, None, :], axis1=1, axis2=2)
    assert abs(unsigned.mean()) > 40 * unsigned.std(ddof=1) / np.sqrt(count)
