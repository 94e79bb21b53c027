"""Means over chains against numpy."""

import jax
import jax.numpy as jnp
import numpy as np

from kernelprop.chains import mean_over_chains


def test_mean_and_standard_error():
    def run(key):
        x = 5.0 + jax.random.normal(key, (3,))
        return {"x": x, "same": jnp.ones(2) / 3}

    key = jax.random.key(1)
    mean, stderr = jax.jit(lambda k: mean_over_chains(run, k, 10))(key)
    values = np.stack([run(jax.random.fold_in(key, n))["x"] for n in range(10)])
    np.testing.assert_allclose(mean["x"], values.mean(0), rtol=1e-6)
    np.testing.assert_allclose(stderr["x"], values.std(0, ddof=1) / np.sqrt(10), rtol=1e-5)
    np.testing.assert_array_equal(stderr["same"], 0)
    np.testing.assert_array_equal(mean["same"], jnp.ones(2) / 3)
