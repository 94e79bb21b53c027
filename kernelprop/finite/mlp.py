"""The MLP sublayers of a finite network: the twins of the kernel maps in `kernelprop.layers`."""

from collections.abc import Mapping
from functools import singledispatch
from typing import Any

import numpy as np
from jaxtyping import Array, Float

from kernelprop.finite.families import Shape
from kernelprop.finite.products import Products
from kernelprop.layers.gated_mlp import GatedMLP
from kernelprop.layers.mlp import MLP


@singledispatch
def apply(mlp: Any, product: Products, x: Float[Array, "T d"]) -> Float[Array, "T d"]:
    """The finite MLP sublayer. One kind of MLP, one registration."""
    raise TypeError(f"{type(mlp).__name__} has no finite network")


@apply.register
def plain(mlp: MLP, product: Products, x: Float[Array, "T d"]) -> Float[Array, "T d"]:
    """``φ(X W₁ + b₁) W₂ + b₂``; a bias is one vector that all positions share."""
    hidden = mlp.activation(_biased(product, "mlp_in", "mlp_bias_in", x))
    return _biased(product, "mlp_out", "mlp_bias_out", hidden)


@apply.register
def gated(mlp: GatedMLP, product: Products, x: Float[Array, "T d"]) -> Float[Array, "T d"]:
    """``(φ(X W₁) ∘ X W_g) W₂``."""
    return product("mlp_out", mlp.activation(product("mlp_in", x)) * product("mlp_gate", x))


def _biased(product: Products, weight: str, bias: str, x: Array) -> Array:
    y = product(weight, x)
    return y + product.weights[bias][None, :] if bias in product.weights else y


@singledispatch
def gains(mlp: Any) -> Mapping[str, Array]:
    """What multiplies each of the MLP's matrices."""
    raise TypeError(f"{type(mlp).__name__} has no finite network")


@gains.register
def _plain_gains(mlp: MLP) -> Mapping[str, Array]:
    return {"mlp_in": mlp.gain_in, "mlp_out": mlp.gain_out}


@gains.register
def _gated_gains(mlp: GatedMLP) -> Mapping[str, Array]:
    return {"mlp_in": mlp.gain_in, "mlp_gate": mlp.gain_gate, "mlp_out": mlp.gain_out}


@singledispatch
def bias_variances(mlp: Any) -> Mapping[str, Any]:
    """The variance of every bias that the MLP has, by name."""
    return {}


@bias_variances.register
def _plain_biases(mlp: MLP) -> Mapping[str, Any]:
    return {"mlp_bias_in": mlp.bias_in, "mlp_bias_out": mlp.bias_out}


def shapes(mlp: Any, width: int) -> dict[str, Shape]:
    """The shapes of the MLP's matrices at a width.

    Raises:
        ValueError: where the expansion times the width is not whole.
    """
    if mlp is None:
        return {}
    hidden = round(mlp.expansion * width)
    if abs(hidden - mlp.expansion * width) > 1e-9 * width or not hidden:
        raise ValueError(f"mlp: expansion {mlp.expansion:g} times width {width} is not a whole number of units")
    outward = Shape(width, hidden)
    return {name: Shape(hidden, width) if name == "mlp_out" else outward for name in gains(mlp)}


def biases(mlp: Any, width: int) -> dict[str, int]:
    """The lengths of the biases that some layer has; an MLP without them draws none."""
    if mlp is None:
        return {}
    hidden = round(mlp.expansion * width)
    lengths: dict[str, int] = {"mlp_bias_in": hidden, "mlp_bias_out": width}
    return {name: lengths[name] for name, variance in bias_variances(mlp).items() if np.any(np.asarray(variance))}
