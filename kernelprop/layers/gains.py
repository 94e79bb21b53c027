"""Gains of the attention's weights."""

from typing import Any, Self

import equinox as eqx
from jaxtyping import Float

from kernelprop.layers import per_layer


class Gains(eqx.Module):
    """What multiplies the standard deviation of each of the attention's weights, a number or one a layer.

    ``W_V`` has entry variance ``value² / fan_in``, and so on. ``query`` and ``key`` don't enter the kernel under
    given attention, only gradients; ``temperature`` is the factor ``τ`` of the logits.

    >>> Gains(value=2.0).value
    array(2.)
    """

    query: Float[Any, "*layers"]
    key: Float[Any, "*layers"]
    value: Float[Any, "*layers"]
    output: Float[Any, "*layers"]
    temperature: Float[Any, "*layers"]

    def __init__(
        self, query: Any = 1.0, key: Any = 1.0, value: Any = 1.0, output: Any = 1.0, temperature: Any = 1.0
    ) -> None:
        self.query = per_layer.number(query, "gains: query")
        self.key = per_layer.number(key, "gains: key")
        self.value = per_layer.number(value, "gains: value")
        self.output = per_layer.number(output, "gains: output")
        self.temperature = per_layer.number(temperature, "gains: temperature")

    def per_layer(self, depth: int) -> Self:
        """The same gains spread over ``depth`` layers."""
        return per_layer.spread(self, ("query", "key", "value", "output", "temperature"), depth, "gains")
