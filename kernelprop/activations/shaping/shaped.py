"""Shaped activations: an affine change of a function's input and output, or a leaky ReLU with a scale."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from kernelprop.activations.base import Activation, ClosedForm
from kernelprop.activations.numeric import Numeric
from kernelprop.activations.rectifiers import LeakyReLU


@dataclass(frozen=True)
class Affine:
    """``output_scale (phi(input_scale x + input_shift) + output_shift)``, equal for equal numbers."""

    base: Activation
    input_scale: float
    input_shift: float
    output_shift: float
    output_scale: float

    def __call__(self, x: Array) -> Array:
        """The value at ``x``; Python floats keep its dtype."""
        return self.output_scale * (self.base(self.input_scale * x + self.input_shift) + self.output_shift)


class Shaped(Activation):
    """``output_scale (phi(input_scale x + input_shift) + output_shift)``; ``phi`` is ``affine.base``."""

    affine: Affine = eqx.field(static=True)
    label: str = eqx.field(static=True)

    @property
    def name(self) -> str:
        """The method and the base's name, as in ``dks(gelu)``."""
        return self.label

    @property
    def parameters(self) -> Mapping[str, float]:
        """``input_scale``, ``input_shift``, ``output_shift`` and ``output_scale``."""
        names = ("input_scale", "input_shift", "output_shift", "output_scale")
        return {name: getattr(self.affine, name) for name in names}

    @property
    def numeric(self) -> Numeric:
        """The same function for quadrature, its base's declared kinks moved along."""
        base = self.affine.base
        kinks = base.kinks if isinstance(base, Numeric) else ()
        moved = ((kink - self.affine.input_shift) / self.affine.input_scale for kink in kinks)
        return Numeric(self.affine, self.label, tuple(sorted(moved)))

    def __call__(self, x: Any, /) -> Array:
        """The shaped function, in the dtype of ``x``."""
        return self.affine(jnp.asarray(x))

    def dual(self, q1: Float[Array, "..."], q2: Float[Array, "..."], c: Float[Array, "..."]) -> Array:
        """``E[phi(u) phi(v)]``."""
        return self.numeric.dual(q1, q2, c)

    def dual_derivative(self, q1: Float[Array, "..."], q2: Float[Array, "..."], c: Float[Array, "..."]) -> Array:
        """``E[phi'(u) phi'(v)]``."""
        return self.numeric.dual_derivative(q1, q2, c)

    def kernel(self, q: Float[Array, " T"], c: Float[Array, "T T"]) -> Float[Array, "T T"]:
        """``K(q_i, q_j, c_ij)``."""
        return self.numeric.kernel(q, c)

    def kernel_derivative(self, q: Float[Array, " T"], c: Float[Array, "T T"]) -> Float[Array, "T T"]:
        """``Kdot(q_i, q_j, c_ij)``."""
        return self.numeric.kernel_derivative(q, c)

    def mean(self, q: Float[Array, "..."]) -> Float[Array, "..."]:
        """``E phi(u)``."""
        return self.numeric.mean(q)

    def second_moment(self, q: Float[Array, "..."]) -> Float[Array, "..."]:
        """``E phi(u)^2``."""
        return self.numeric.second_moment(q)

    def derivative_second_moment(self, q: Float[Array, "..."]) -> Float[Array, "..."]:
        """``E phi'(u)^2``."""
        return self.numeric.derivative_second_moment(q)


class ShapedLeakyReLU(ClosedForm):
    """``output_scale (max(x, 0) + negative_slope min(x, 0))``."""

    negative_slope: float
    output_scale: float
    label: str = eqx.field(static=True, default="tat(leaky_relu)")

    @property
    def name(self) -> str:
        """``tat(leaky_relu)``."""
        return self.label

    @property
    def parameters(self) -> Mapping[str, float]:
        """``negative_slope`` and ``output_scale``."""
        return {"negative_slope": self.negative_slope, "output_scale": self.output_scale}

    @property
    def base(self) -> LeakyReLU:
        """The leaky ReLU without its scale."""
        return LeakyReLU(self.negative_slope)

    def __call__(self, x: Any, /) -> Array:
        """The shaped function, in the dtype of ``x``."""
        value = self.base(x)
        return value * jnp.asarray(self.output_scale, value.dtype)

    def dual(self, q1: Float[Array, "..."], q2: Float[Array, "..."], c: Float[Array, "..."]) -> Array:
        """``E[phi(u) phi(v)]``."""
        return self.output_scale**2 * self.base.dual(q1, q2, c)

    def dual_derivative(self, q1: Float[Array, "..."], q2: Float[Array, "..."], c: Float[Array, "..."]) -> Array:
        """``E[phi'(u) phi'(v)]``."""
        return self.output_scale**2 * self.base.dual_derivative(q1, q2, c)

    def mean(self, q: Float[Array, "..."]) -> Float[Array, "..."]:
        """``E phi(u)``."""
        return self.output_scale * self.base.mean(q)

    def second_moment(self, q: Float[Array, "..."]) -> Float[Array, "..."]:
        """``E phi(u)^2``."""
        return self.output_scale**2 * self.base.second_moment(q)

    def derivative_second_moment(self, q: Float[Array, "..."]) -> Float[Array, "..."]:
        """``E phi'(u)^2``."""
        return self.output_scale**2 * self.base.derivative_second_moment(q)
