"""Gradient norms of queries and values in one layer, against input scale, ``T``, ``d`` and ``ρ``.

The closed forms of Noci et al. 2022 beside gradients by automatic differentiation of sampled layers, which share no
code with them: ``S = softmax(X W_Q W_Kᵀ Xᵀ/√d_k) X W_V`` at ``W_Q = 0``, inputs and weights Gaussian, and
``‖∂S/∂W‖²_F = E_R ‖∂⟨R, S⟩/∂W‖²_F`` with ``R`` standard normal.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Self

import jax
import jax.numpy as jnp
import numpy as np

from kernelprop.predictions import noci2022


@dataclass(frozen=True)
class Spec:
    """The setting in the middle, and the values of each number that is moved away from it."""

    name: ClassVar[str] = "noci2022_gradients"
    question: ClassVar[str] = "how do query and value gradients of a layer depend on input scale, T, d and ρ?"

    length: int = 16
    width: int = 32
    correlation: float = 0.2
    scales: tuple[float, ...] = (0.1, 0.3, 1.0, 3.0, 10.0)
    lengths: tuple[int, ...] = (2, 4, 8, 16, 32, 64)
    widths: tuple[int, ...] = (8, 16, 32, 64, 128)
    correlations: tuple[float, ...] = (0.0, 0.2, 0.4, 0.6, 0.8, 0.95)
    draws: int = 512
    seed: int = 0

    @classmethod
    def quick(cls) -> Self:
        return cls(length=4, width=8, scales=(1.0,), lengths=(4,), widths=(8,), correlations=(0.0, 0.5), draws=16)

    def points(self) -> tuple[str, ...]:
        return ("scale", "length", "width", "correlation")

    def measure(self, point: str) -> dict[str, Any]:
        """Norms, not squares, with standard errors of the measured ones; the axis' values come along."""
        values = {
            "scale": self.scales,
            "length": self.lengths,
            "width": self.widths,
            "correlation": self.correlations,
        }[point]
        rows = [self._at(**{point: value}) for value in values]
        return {"values": np.array(values), **{name: np.array([row[name] for row in rows]) for name in rows[0]}}

    def _at(self, scale: float = 1.0, **moved: Any) -> dict[str, float]:
        length, width = moved.get("length", self.length), moved.get("width", self.width)
        correlation = moved.get("correlation", self.correlation)
        entries = 1 / width  # of the weights: variance 1/fan_in
        sizes = (length, width, width, correlation, scale**2)
        query = noci2022.expected_query_jacobian(*sizes, value_variance=entries, key_variance=entries)
        value = noci2022.expected_value_jacobian(*sizes)
        keys = jax.random.split(jax.random.key(self.seed), self.draws)
        with jax.default_matmul_precision("highest"):
            squares = np.asarray(_squares(keys, correlation, scale, length, width), np.float64)
        found = {"query": np.sqrt(query), "value": np.sqrt(value)}
        for name, drawn in zip(("query", "value"), squares.T, strict=True):
            root = np.sqrt(drawn.mean())
            found[f"sampled_{name}"] = root
            # Of the root of a mean: half the mean's relative error.
            found[f"sampled_{name}_stderr"] = drawn.std(ddof=1) / np.sqrt(self.draws) / (2 * root)
        return {name: float(number) for name, number in found.items()}


@partial(jax.jit, static_argnums=(3, 4))
def _squares(keys: jax.Array, correlation: float, scale: float, length: int, width: int) -> jax.Array:
    """Squared gradient norms of ``W_Q`` and ``W_V``, a row a draw."""

    def one(key: jax.Array) -> jax.Array:
        own, common, keys_, values, loss = jax.random.split(key, 5)
        rows = jax.random.normal(own, (length, width)) * jnp.sqrt(1 - correlation)
        inputs = scale * (rows + jax.random.normal(common, (1, width)) * jnp.sqrt(correlation))
        key_weight = jax.random.normal(keys_, (width, width)) / jnp.sqrt(width)
        value_weight = jax.random.normal(values, (width, width)) / jnp.sqrt(width)
        direction = jax.random.normal(loss, (length, width))

        def paired(query_weight: jax.Array, value_weight: jax.Array) -> jax.Array:
            logits = (inputs @ query_weight) @ (inputs @ key_weight).T / jnp.sqrt(width)
            return jnp.vdot(direction, jax.nn.softmax(logits, axis=-1) @ (inputs @ value_weight))

        gradients = jax.grad(paired, (0, 1))(jnp.zeros((width, width)), value_weight)
        return jnp.stack([jnp.sum(gradient**2) for gradient in gradients])

    return jax.lax.map(one, keys)
