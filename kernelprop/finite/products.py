"""Products with weights, and probes that read the squared norm of a weight's gradient.

A probe is a scalar that adds nothing to the product; its derivative is ``‖∂loss/∂W‖²_F``. So one vector-Jacobian
product of a layer, with respect to its input and its probes, gives the cotangent for the layer below and all
norms, and no gradient of the size of a weight need be kept.
"""

from collections.abc import Mapping

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

Probes = Mapping[str, Float[Array, ""]]


class Products(eqx.Module):
    """The weights of one layer, and a probe for each whose gradient is to be measured."""

    weights: Mapping[str, Array]
    probes: Probes | None = None

    def __call__(self, name: str, x: Float[Array, "T fan_in"]) -> Float[Array, "T fan_out"]:
        """``X W`` with the weight of that name."""
        weight = self.weights[name]
        if self.probes is None:
            return x @ weight
        return probed_product(x, weight, self.probes[name])


@jax.custom_vjp
def probed_product(
    x: Float[Array, "T fan_in"], weight: Float[Array, "fan_in fan_out"], probe: Float[Array, ""]
) -> Float[Array, "T fan_out"]:
    """``X W``; the cotangent of the probe is ``‖Xᵀ G‖²_F``, ``G`` the cotangent of the product.

    The weight itself gets no cotangent: who wants the gradient takes the plain product.
    """
    return x @ weight


def _forward(x: Array, weight: Array, probe: Array) -> tuple[Array, tuple[Array, Array]]:
    return x @ weight, (x, weight)


def _backward(saved: tuple[Array, Array], cotangent: Array) -> tuple[Array, None, Array]:
    x, weight = saved
    return cotangent @ weight.T, None, squared_norm_of_product(x, cotangent)


probed_product.defvjp(_forward, _backward)


def squared_norm_of_product(x: Float[Array, "T n"], g: Float[Array, "T m"]) -> Float[Array, ""]:
    """``‖Xᵀ G‖²_F``, as ``⟨X Xᵀ, G Gᵀ⟩`` where that takes fewer products (few rows, wide weights)."""
    (rows, fan_in), fan_out = x.shape, g.shape[1]
    if rows * (fan_in + fan_out) < fan_in * fan_out:
        return jnp.sum((x @ x.T) * (g @ g.T))
    return jnp.sum((x.T @ g) ** 2)


def zero_probes(names: tuple[str, ...], dtype: jnp.dtype) -> dict[str, Array]:
    """A probe for each name."""
    return {name: jnp.zeros((), dtype) for name in names}
