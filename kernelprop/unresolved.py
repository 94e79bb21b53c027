"""Which layer's activation could not be integrated, where numbers end at one."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from kernelprop.activations.convergence import refuse_unresolved, representable
from kernelprop.activations.integrand import Integrand
from kernelprop.activations.numeric import Numeric
from kernelprop.activations.shaping.shaped import Shaped
from kernelprop.architecture import Transformer
from kernelprop.layers import block, random_attention
from kernelprop.layers.mlp import preactivation
from kernelprop.precision import in_double
from kernelprop.split_kernel import SplitKernel, split


def refuse_unresolved_layers(model: Transformer, kernels: np.ndarray, diagonal: np.ndarray) -> None:
    """Look at the first layer behind which a diagonal is NaN: quadrature that doesn't converge gives NaN.

    Args:
        model: the network.
        kernels: the input kernels, ``(B, T, T)``.
        diagonal: their diagonals by depth, ``(B, L + 1, T)``.

    Raises:
        ValueError: with the layer, and the variance at which the activation is not resolved.
    """
    numeric = _numeric(model)
    if numeric is None:
        return
    for kernel, numbers in zip(kernels, np.isnan(diagonal), strict=True):
        lost = numbers.any(-1)
        if lost.any() and not lost[0]:
            _through(model, kernel, int(np.argmax(lost)), (numeric.integrand,))


def refuse_unresolved_slopes(model: Transformer, kernel: np.ndarray) -> None:
    """The same for gradients that are NaN: look at the activation and its derivative in all layers.

    Raises:
        ValueError: as `refuse_unresolved_layers`.
    """
    numeric = _numeric(model)
    if numeric is not None:
        _through(model, kernel, model.depth, (numeric.integrand, numeric.integrand.derivative))


def _numeric(model: Transformer) -> Numeric | None:
    """The MLP's activation, where its kernels come from quadrature."""
    found = getattr(model.mlp, "activation", None)
    if isinstance(found, Shaped):
        found = found.numeric
    return found if isinstance(found, Numeric) else None


@in_double
def _through(model: Transformer, kernel: np.ndarray, last: int, integrands: tuple[Integrand, ...]) -> None:
    """Take the kernel up to a layer, and look at the variances that its activation meets on the way."""
    model = jax.tree.map(lambda leaf: jnp.asarray(leaf), model)
    layered, state = model.layered(), split(jnp.asarray(kernel))
    key = None if random_attention.drawn(model.attention) is None else jax.random.key(0)

    def looked_at(mlp: Any, entering: SplitKernel) -> SplitKernel:
        q = np.asarray(preactivation(entering, mlp.gain_in, getattr(mlp, "bias_in", 0.0 * mlp.gain_in))[0])
        for f in integrands:
            known = q[representable(f, q)]
            if len(known):
                refuse_unresolved(f, known)
        return block.WHOLE.mlp(mlp, entering)

    for layer in range(last):
        here = jax.tree.map(lambda leaf, number=layer: leaf[number], layered)
        try:
            state = block.forward(model.block(here), state, key, block.WHOLE._replace(mlp=looked_at))
        except ValueError as error:
            raise ValueError(f"layer {layer + 1}: {error}") from None
