"""One block of a finite network: the twin of the kernel map in `kernelprop.layers.block`."""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float

from kernelprop.finite import mlp
from kernelprop.finite.attention import attend
from kernelprop.finite.norm import normalise
from kernelprop.finite.products import Products
from kernelprop.layers.block import Block
from kernelprop.layers.norm import Norm


def apply(block: Block, product: Products, x: Float[Array, "T d"], heads: int) -> Float[Array, "T d"]:
    """Take one example through one block, whose ``attention`` is a pattern."""
    if block.parallel:
        return _parallel(block, product, x, heads)
    middle = _attention_sublayer(block, product, x, heads)
    return middle if block.mlp is None else _mlp_sublayer(block, product, middle)


def _attention_sublayer(block: Block, product: Products, x: Array, heads: int) -> Array:
    branch = _attention(block, product, _before(block.norm, x), heads)
    return _after(block.norm, _sum(None if block.residual is None else block.residual.attention, x, branch))


def _mlp_sublayer(block: Block, product: Products, x: Array) -> Array:
    branch = mlp.apply(block.mlp, product, _before(block.norm, x))
    return _after(block.norm, _sum(None if block.residual is None else block.residual.mlp, x, branch))


def _parallel(block: Block, product: Products, x: Array, heads: int) -> Array:
    inside = _before(block.norm, x)
    total = _sum(
        None if block.residual is None else block.residual.attention, x, _attention(block, product, inside, heads)
    )
    if block.mlp is not None:
        branch = mlp.apply(block.mlp, product, inside)
        total = total + (branch if block.residual is None else block.residual.mlp[1] * branch)
    return _after(block.norm, total)


def _attention(block: Block, product: Products, x: Array, heads: int) -> Array:
    temperature = jnp.ones((), x.dtype) if block.gains is None else block.gains.temperature
    return attend(block.attention, product, x, heads, temperature)


def _sum(weights: Any, skip: Array, branch: Array) -> Array:
    """``α x + β f(x)``; without weights the branch alone."""
    if weights is None:
        return branch
    alpha, beta = weights
    return alpha * skip + beta * branch


def _before(how: Norm | None, x: Array) -> Array:
    return normalise(how, x) if how is not None and how.place == "pre" else x


def _after(how: Norm | None, x: Array) -> Array:
    return normalise(how, x) if how is not None and how.place == "post" else x
