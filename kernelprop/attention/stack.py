"""A stack of attention layers of one structure: the layer's arrays with a leading depth axis."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import equinox as eqx
import jax
import numpy as np

from kernelprop.attention.layer import AttentionLayer, operand
from kernelprop.attention.softmax_form import SoftmaxForm, stack_softmax_forms
from kernelprop.precision import numpy_in_numpy_out


class AttentionStack(eqx.Module):
    """``L`` attention layers: ``stack[0]`` is layer 1, applied first.

    ``layers`` is one `AttentionLayer` whose array leaves all have a leading axis ``L``; a scan over depth
    takes it as it is. The operations act layer by layer on the same argument and return a leading axis ``L``.
    """

    layers: AttentionLayer

    def __check_init__(self) -> None:
        depths = {np.shape(leaf)[0] if np.ndim(leaf) else None for leaf in jax.tree.leaves(self.layers)}
        if len(depths) != 1 or None in depths:
            raise ValueError(f"attention stack: the layers' arrays have different depths {sorted(map(str, depths))}")

    @property
    def depth(self) -> int:
        """The number of layers ``L``."""
        return int(np.shape(jax.tree.leaves(self.layers)[0])[0])

    @property
    def length(self) -> int:
        """The number of positions ``T``."""
        return self.layers.length

    @property
    def heads(self) -> int | None:
        """The number of heads that have a matrix of their own, None where all share one."""
        return self.layers.heads

    def __len__(self) -> int:
        return self.depth

    def __getitem__(self, layer: int) -> AttentionLayer:
        depth = self.depth
        if not -depth <= layer < depth:
            raise IndexError(f"attention stack: index {layer} is outside its {depth} layers (0 is layer 1)")
        return jax.tree.map(lambda leaf: leaf[layer], self.layers)

    def __iter__(self) -> Iterator[AttentionLayer]:
        return (self[layer] for layer in range(self.depth))

    def matmul(self, x: Any) -> Any:
        """``A_l X`` for every layer: ``(L, T, d)``, or ``(L, H, T, d)`` with heads."""
        return _by_layer("matmul", self.layers, operand(x, self.length))

    def rmatmul(self, x: Any) -> Any:
        """``A_lᵀ X`` for every layer: ``(L, T, d)``, or ``(L, H, T, d)`` with heads."""
        return _by_layer("rmatmul", self.layers, operand(x, self.length))

    def conjugate(self, kernel: Any) -> Any:
        """``A_l S A_lᵀ``, averaged over heads, for every layer: ``(L, T, T)``."""
        return _by_layer("conjugate", self.layers, operand(kernel, self.length))

    def conjugate_transposed(self, kernel: Any) -> Any:
        """``A_lᵀ S A_l``, averaged over heads, for every layer: ``(L, T, T)``."""
        return _by_layer("conjugate_transposed", self.layers, operand(kernel, self.length))

    def as_matrix(self) -> np.ndarray:
        """All matrices, float64, ``(L, T, T)`` or ``(L, H, T, T)``."""
        return np.stack([layer.as_matrix() for layer in self])

    def softmax_form(self) -> SoftmaxForm:
        """``rescale (L, T)``, ``bias (L, T, T)``, ``mask (T, T)``; ``H`` after ``L`` with heads.

        Raises:
            ValueError: naming the layer and the entry that a softmax can't produce.
        """
        forms = []
        for number, layer in enumerate(self, start=1):
            try:
                forms.append(layer.softmax_form())
            except ValueError as error:
                raise ValueError(f"layer {number}: {error}") from None
        return stack_softmax_forms(forms)


@numpy_in_numpy_out
@partial(jax.jit, static_argnums=0)
def _by_layer(operation: str, layers: AttentionLayer, x: Any) -> Any:
    return jax.lax.map(lambda layer: getattr(layer, operation)(x), layers)


AttentionOperator = AttentionLayer | AttentionStack
"""One layer that a network repeats, or a stack with a layer for each depth."""
