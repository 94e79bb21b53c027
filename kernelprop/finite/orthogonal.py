"""Orthogonal weights, uniform over all rotations and reflections (Haar)."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from kernelprop.finite.families import Family, Shape
from kernelprop.finite.reflections import reflected
from kernelprop.finite.threefry import normal


class Orthogonal(Family):
    """Haar: ``W Wᵀ = I`` for a square matrix; a rectangular one has orthonormal rows or columns.

    Rectangular matrices are rescaled by ``max(√(fan_out/fan_in), 1)``, so that the entries have variance
    ``1/fan_in`` and the mean square is kept, as for Gaussian weights. With ``rescale=False`` a matrix that widens
    keeps the norm and not the mean square, which it divides by ``fan_out/fan_in``.

    With ``per_head=True`` each head's columns of queries, keys and values are an independent matrix
    ``(fan_in, fan_out/heads)`` of its own. As one matrix, the default, they are orthogonal to one another.

    >>> Orthogonal().variance(Shape(64, 256)), Orthogonal(rescale=False).variance(Shape(64, 256))
    (0.015625, 0.00390625)
    """

    rescale: bool = eqx.field(static=True, default=True)
    per_head: bool = eqx.field(static=True, default=False)

    def variance(self, shape: Shape) -> float:
        """``1/fan_in``; without the rescale ``1/max(fan_in, fan_out)``, fan-out of a head where drawn by heads."""
        return 1 / (shape.fan_in if self.rescale else max(shape.fan_in, shape.fan_out // self._pieces(shape)))

    def draw(self, key: Array, shape: Shape, dtype: jnp.dtype) -> Float[Array, "fan_in fan_out"]:
        """One matrix."""
        pieces = self._pieces(shape)
        columns = shape.fan_out // pieces
        matrices = [haar(one, shape.fan_in, columns, dtype) for one in _split(key, pieces)]
        scale = (columns / shape.fan_in) ** 0.5 if self.rescale and columns > shape.fan_in else 1.0
        return jnp.concatenate(matrices, axis=1) * jnp.asarray(scale, dtype)

    def _pieces(self, shape: Shape) -> int:
        return shape.heads if self.per_head and shape.heads else 1


def _split(key: Array, pieces: int) -> list[Array]:
    return [key] if pieces == 1 else list(jax.random.split(key, pieces))


def haar(key: Array, rows: int, columns: int, dtype: jnp.dtype) -> Float[Array, "rows columns"]:
    """A matrix with orthonormal rows (or columns, whichever are fewer), uniform among all such: invariant under
    rotations, which a factorisation without sign correction is not (``E Q_00 = −2/π`` for 2 × 2).
    """
    factor = reflected(normal(key, (max(rows, columns), min(rows, columns)), dtype))
    return factor if rows >= columns else factor.T
