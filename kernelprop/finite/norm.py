"""LayerNorm and RMSNorm of a finite network, exact."""

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from kernelprop.layers.norm import Norm


def normalise(norm: Norm, x: Float[Array, "T d"]) -> Float[Array, "T d"]:
    """``x / sqrt(mean x² + ε)``; LayerNorm takes the mean over features off first, so that it is the variance.

    The variance is the biased one (a mean over ``d``), and ε stands under the root. A position of zero variance
    gives 0 for ``ε > 0`` and NaN for ``ε = 0``.
    """
    if norm.kind == "layer":
        x = x - jnp.mean(x, axis=-1, keepdims=True)
    return x * lax.rsqrt(jnp.mean(x**2, axis=-1, keepdims=True) + jnp.asarray(norm.epsilon, x.dtype))
