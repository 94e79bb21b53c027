"""What a network is fed: an example with a prescribed kernel, a given one, or token ids; and the loss's cotangent."""

from functools import singledispatch
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from kernelprop import cotangents, door
from kernelprop.architecture import Transformer
from kernelprop.attention.prescribed import symmetric_root
from kernelprop.finite.orthogonal import haar
from kernelprop.finite.threefry import normal
from kernelprop.infinite import checked_input


class FromKernel(eqx.Module):
    """``X = F Q √d``, ``F Fᵀ = Σ_0``, ``Q (T, d)`` Haar with orthonormal rows, new each draw: ``X Xᵀ/d = Σ_0``."""

    factor: Float[Any, "T T"]


class Given(eqx.Module):
    """The same example in every draw."""

    example: Float[Any, "T d"]


class Tokens(eqx.Module):
    """Token ids, embedded by a table of independent N(0, 1) rows, new each draw; equal ids have equal rows."""

    ids: Int[Any, "T"]


@singledispatch
def sample(source: Any, key: Array, width: int, dtype: Any) -> Float[Array, "T d"]:
    """The input of one draw. One kind of input, one registration."""
    raise TypeError(f"{type(source).__name__} is no input")


@sample.register
def _from_kernel(source: FromKernel, key: Array, width: int, dtype: Any) -> Float[Array, "T d"]:
    rows = haar(key, len(source.factor), width, dtype)
    return source.factor @ rows * jnp.asarray(width**0.5, dtype)


@sample.register
def _given(source: Given, key: Array, width: int, dtype: Any) -> Float[Array, "T d"]:
    return source.example


@sample.register
def _embedded(source: Tokens, key: Array, width: int, dtype: Any) -> Float[Array, "T d"]:
    # A row belongs to its token's id: no table of the size of a vocabulary is made.
    return jax.vmap(lambda token: normal(jax.random.fold_in(key, token), (width,), dtype))(source.ids)


def gaussian_with_kernel(factor: Float[Array, "T T"] | None, key: Array, shape: tuple[int, int], dtype: Any) -> Array:
    """``F Z``, ``Z (T, d)`` of independent N(0, 1): kernel ``F Fᵀ`` in expectation; ``Z`` where no factor is given."""
    noise = normal(key, shape, dtype)
    return noise if factor is None else factor @ noise


def network_input(model: Transformer, kernel0: Any, inputs: Any, width: int) -> FromKernel | Given | Tokens:
    """Check what the network is fed: exactly one of a kernel and inputs.

    Raises:
        ValueError: where both or neither is given, shapes don't fit, or a norm with ``ε = 0`` would divide by zero.
    """
    if (kernel0 is None) == (inputs is None):
        raise ValueError("give exactly one of kernel0, (T, T), and inputs, (T, d) or token ids (T,)")
    if kernel0 is not None:
        return _prescribed(model, kernel0, width)
    array = np.asarray(inputs)
    if array.ndim == 1 and array.dtype.kind in "iu":
        return _tokens(model, array)
    return _example(model, array, width)


def _prescribed(model: Transformer, kernel0: Any, width: int) -> FromKernel:
    kernel = checked_input(model, kernel0)
    if kernel.ndim != 2:
        raise ValueError(f"kernel0: one kernel (T, T) is wanted, shape {kernel.shape} was given")
    if width < len(kernel):
        raise ValueError(
            f"width: {width} is below the {len(kernel)} positions; an input with a prescribed kernel "
            "needs d ≥ T (or give inputs)"
        )
    return FromKernel(symmetric_root(kernel.astype(np.float64)))


def _tokens(model: Transformer, ids: np.ndarray) -> Tokens:
    if len(ids) != model.length:
        raise ValueError(f"inputs: {len(ids)} token ids, but the attention has {model.length} positions")
    if ids.min() < 0 or ids.max() >= 2**31:
        bad = int(np.flatnonzero((ids < 0) | (ids >= 2**31))[0])
        raise ValueError(f"inputs: position {bad}: token id {ids[bad]} is outside 0…{2**31 - 1}")
    return Tokens(ids.astype(np.uint32))


def _example(model: Transformer, array: np.ndarray, width: int) -> Given:
    example = door.real_array(array, "inputs")
    if example.shape != (model.length, width):
        raise ValueError(f"inputs: shape {example.shape} is not (T, d) = ({model.length}, {width}), nor token ids (T,)")
    if model.norm is not None and model.norm.epsilon == 0 and model.norm.place == "pre" and model.positions is None:
        _refuse_flat(example, model.norm.kind)
    return Given(example.astype(np.float64))


def _refuse_flat(example: np.ndarray, kind: str) -> None:
    """A norm with ``ε = 0`` divides by the variance (LayerNorm) or the mean square (RMSNorm) of a position."""
    flat = np.ptp(example, axis=1) == 0 if kind == "layer" else ~np.any(example, axis=1)
    if flat.any():
        what = "variance" if kind == "layer" else "norm"
        raise ValueError(
            f"inputs: position {int(flat.argmax())} has zero {what}, and a norm with epsilon=0 divides by it"
        )


def position_factor(model: Transformer) -> np.ndarray | None:
    """The factor of the positional embeddings' kernel, None where there are none."""
    return None if model.positions is None else symmetric_root(np.asarray(model.positions))


def cotangent_factor(cotangent: Any, length: int) -> np.ndarray | None:
    """The factor of a cotangent kernel ``G_L``, a name of `kernelprop.cotangents` or its entries; None: the identity.

    Raises:
        ValueError: for an unknown name, another shape, and what is no kernel.
    """
    kernel = cotangents.resolve(cotangent, length)
    if cotangent is None or (isinstance(cotangent, str) and cotangent == "all"):
        return None
    return symmetric_root(kernel.astype(np.float64))
