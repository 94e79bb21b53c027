"""Second-order maps of the sublayers that act position by position: norms and MLPs.

A tangent ``ẏ`` of the network, the direction in which one parameter moves a representation ``z``, has the overlap
``X_ij = ⟨z_i, ẏ_j⟩/d`` with the representation and the kernel ``Ẋ_ij = ⟨ẏ_i, ẏ_j⟩/d``. A map of kernels ``Σ'_ij =
f(q_i, q_j, Σ_ij)``, applied to ``z_i + εẏ_i`` and ``z_j + ηẏ_j``, gives by its derivatives in ``ε`` and ``η``

    X'_ij = f_r X_ij + 2 f_{q_j} X_jj,
    Ẋ'_ij = f_r Ẋ_ij + f_rr X_ij X_ji + 2 f_{r q_j} X_ji X_jj + 2 f_{r q_i} X_ij X_ii + 4 f_{q_i q_j} X_ii X_jj.

The first term of ``Ẋ'`` is what the cotangent kernel already carries (``G ← G ∘ f_r``); the rest is what a first-order
query row misses. For a norm and for an MLP this is the correction of theory's section on the query row, at any depth.
"""

from functools import singledispatch
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from kernelprop.activations import Activation
from kernelprop.layers.gated_mlp import GatedMLP
from kernelprop.layers.mlp import MLP, preactivation
from kernelprop.layers.norm import Norm, inverse_scale
from kernelprop.split_kernel import SplitKernel

Matrix = Float[Array, "T T"]

# The variance of a position of none, beside the largest, in front of an activation.
VANISHING = 1e-12


class Bend(NamedTuple):
    """The derivatives of a map of kernels at the network's own kernel.

    ``slope = f_r``, ``drift = 2 f_{q_j}``, ``twist = f_rr``, ``cross = 2 f_{r q_j}``, ``corner = 4 f_{q_i q_j}``, all
    ``(T, T)``. On the diagonal only sums count: there ``twist`` holds all of the second order, the others 0.
    """

    slope: Matrix
    drift: Matrix
    twist: Matrix
    cross: Matrix
    corner: Matrix

    def transport(self, overlap: Float[Array, "*batch T T"]) -> Float[Array, "*batch T T"]:
        """``X'`` of overlaps ``X``."""
        own = jnp.diagonal(overlap, axis1=-2, axis2=-1)[..., None, :]
        return _spread(self.slope, overlap) * overlap + _spread(self.drift, overlap) * own

    def second_order(self, overlap: Float[Array, "*batch T T"]) -> Float[Array, "*batch"]:
        """``⟨G, Ẋ' − f_r Ẋ⟩`` of overlaps, for a bend that is already weighed with ``G``."""
        own = jnp.diagonal(overlap, axis1=-2, axis2=-1)
        turned = jnp.swapaxes(overlap, -1, -2)
        total = _spread(self.twist, overlap) * overlap * turned
        total += 2 * _spread(self.cross, overlap) * turned * own[..., None, :]
        total += _spread(self.corner, overlap) * own[..., :, None] * own[..., None, :]
        return jnp.sum(total, axis=(-2, -1))

    def weighed(self, cotangent: Matrix) -> "Bend":
        """The same with its second order multiplied by the cotangent kernel behind the map."""
        return self._replace(twist=cotangent * self.twist, cross=cotangent * self.cross, corner=cotangent * self.corner)


@singledispatch
def bend(layer: Any, kernel: SplitKernel) -> Bend:
    """The derivatives of a layer's map of kernels at ``kernel``. One kind of layer, one registration."""
    raise ValueError(f"{type(layer).__name__} has no second-order map: its exact query rows aren't known")


@bend.register
def norm_bend(layer: Norm, kernel: SplitKernel) -> Bend:
    """``f = r s_i s_j``, ``s = (q + ε)^{−1/2}``."""
    matrix, s = kernel.join(), inverse_scale(layer, kernel.diagonal())
    slope, square = s[:, None] * s[None, :], (s**2)[None, :]
    drift, cross, corner = -matrix * slope * square, -slope * square, matrix * slope * square * square.T
    on_diagonal = jnp.diagonal(2 * cross + corner)
    return _on_diagonal(Bend(slope, drift, jnp.zeros_like(slope), cross, corner), jnp.diagonal(drift), on_diagonal)


@bend.register
def mlp_bend(layer: MLP, kernel: SplitKernel) -> Bend:
    """``f = σ₂² K(σ₁² · + b₁) + b₂``."""
    inside = _dual_bend(layer.activation, *preactivation(kernel, layer.gain_in, layer.bias_in))
    return _scaled(inside, layer.gain_out**2, layer.gain_in**2)


@bend.register
def gated_bend(layer: GatedMLP, kernel: SplitKernel) -> Bend:
    """``f = σ₂² σ_g² r K(σ₁² ·)``: the product rule."""
    q, c = preactivation(kernel, layer.gain_in, 0.0 * layer.gain_in)
    value, matrix = layer.activation.kernel(q, c), kernel.join()
    inside = _scaled(_dual_bend(layer.activation, q, c), jnp.ones_like(layer.gain_in), layer.gain_in**2)
    twist = 2 * inside.slope + matrix * inside.twist
    product = Bend(
        slope=value + matrix * inside.slope,
        drift=matrix * inside.drift,
        twist=twist,
        cross=inside.drift + matrix * inside.cross,
        corner=matrix * inside.corner,
    )
    on_diagonal = jnp.diagonal(twist + 2 * inside.drift)
    product = _on_diagonal(product, jnp.diagonal(product.drift), on_diagonal)
    return _scaled(product, (layer.gain_out * layer.gain_gate) ** 2, jnp.ones_like(layer.gain_in))


def _dual_bend(phi: Activation, q: Float[Array, "T"], c: Matrix) -> Bend:
    """The derivatives of ``K`` by ``q_i, q_j`` and ``r``: of ``K̇`` by Price's theorem, ``K_r = K̇``.

    The heat equation gives the corner, ``4 K_{q_i q_j} = E[φ''φ''] = K_rr``. On the diagonal kinks make parts
    infinite and the sums stay finite: ``2 d/dq E φ'²`` and ``d/dq E φ² − E φ'²``. A position of variance 0 has no
    overlap ``⟨z, ẏ⟩`` with any tangent: what meets its own counts as 0, the rest is taken at a vanishing variance.
    """
    alive = q > 0
    most = jnp.max(q)
    inside = jnp.where(alive, q, jnp.where(most > 0, VANISHING * most, 1.0))
    q1, q2 = (jnp.broadcast_to(x, c.shape) for x in (inside[:, None], inside[None, :]))
    root = jnp.sqrt(q1 * q2)
    one, nothing = jnp.ones_like(c), jnp.zeros_like(c)

    def by_r_and_q2(dual: Any) -> tuple[Array, Array]:
        _, along_c = jax.jvp(dual, (q1, q2, c), (nothing, nothing, one))
        _, along_q = jax.jvp(dual, (q1, q2, c), (nothing, one, nothing))
        return along_c / root, along_q - c / (2 * q2) * along_c

    _, drift = by_r_and_q2(phi.dual)
    twist, cross = by_r_and_q2(phi.dual_derivative)
    _, moment = jax.jvp(phi.second_moment, (inside,), (jnp.ones_like(q),))
    _, slope_moment = jax.jvp(phi.derivative_second_moment, (inside,), (jnp.ones_like(q),))
    slope = phi.kernel_derivative(q, c)
    drift, cross = (jnp.where(alive[None, :], 2 * part, 0.0) for part in (drift, cross))
    twist = jnp.where(alive[:, None] & alive[None, :], twist, 0.0)
    none = jnp.zeros_like(q)
    own = lax.select(alive, moment - jnp.diagonal(slope), none)
    second = lax.select(alive, 2 * slope_moment, none)
    return _on_diagonal(Bend(slope, drift, twist, cross, twist), own, second)


def _on_diagonal(of: Bend, drift: Float[Array, "T"], second: Float[Array, "T"]) -> Bend:
    """Put the diagonal's sums where they belong."""
    eye = jnp.eye(len(drift), dtype=bool)

    def put(matrix: Matrix, diagonal: Float[Array, "T"]) -> Matrix:
        return jnp.where(eye, diagonal[None, :], matrix)

    none = jnp.zeros_like(drift)
    return Bend(of.slope, put(of.drift, drift), put(of.twist, second), put(of.cross, none), put(of.corner, none))


def _scaled(of: Bend, outside: Float[Array, ""], inside: Float[Array, ""]) -> Bend:
    """``outside · f(inside · …)``: a power of ``inside`` for each derivative."""
    first, second = outside * inside, outside * inside**2
    return Bend(first * of.slope, first * of.drift, second * of.twist, second * of.cross, second * of.corner)


def _spread(matrix: Matrix, batch: Array) -> Array:
    return matrix.reshape((1,) * (batch.ndim - 2) + matrix.shape)
