"""``⟨G, Σ⟩``: a cotangent kernel against a kernel, the number that every gradient norm is made of."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from kernelprop.split_kernel import SplitKernel


def pairing(cotangent: Float[Array, "T T"], kernel: SplitKernel) -> Float[Array, ""]:
    """``Σ_ij G_ij Σ_ij`` of a symmetric ``G``, part by part: a ``G`` without a mean meets the rest alone."""
    sums = jnp.sum(cotangent, axis=0)
    return pair(cotangent, kernel.rest) + 2 * jnp.sum(sums * kernel.cross) + kernel.common * jnp.sum(sums)


def pair(left: Float[Array, "T T"], right: Float[Array, "T T"]) -> Float[Array, ""]:
    """``Σ_ij G_ij Σ_ij`` of two matrices."""
    return jnp.sum(left * right)
