"""The variance of the positions on the residual stream: what is judged, and what a final norm hides."""

from dataclasses import dataclass

import numpy as np

from kernelprop.architecture import Transformer
from kernelprop.layers.norm import Norm
from kernelprop.results import Evolution


@dataclass(frozen=True, eq=False)
class Stream:
    """The diagonal from layer to layer, up to the last residual sum.

    Attributes:
        diagonal: at depths ``0…n``, ``(…, n+1, T)``; ``n`` is ``L`` wherever the last sum is known.
        normed: whether the network has norms.
        final: whether a final norm follows, which gives every position the variance 1 whatever came before.
    """

    diagonal: np.ndarray
    normed: bool = False
    final: bool = False

    @property
    def layers(self) -> int:
        """The last depth ``n``."""
        return self.diagonal.shape[-2] - 1

    @property
    def end(self) -> str:
        """Where it ends, in words."""
        return f"after layer {self.layers}{', before the final norm' if self.final else ''}"


def stream_of(evolution: Evolution) -> Stream:
    """The stream of an evolution; without a final norm its diagonal as it is.

    The final norm stands behind the last depth and moves no other one, so that the last row alone is another. A result
    that doesn't have it (of `propagate_sharded`) has a stream that ends at depth ``L−1``.

    >>> import kernelprop as kp
    >>> skips = kp.Residual(attention=(3.0, 1.0))
    >>> model = kp.Transformer(kp.identity(4), 2, residual=skips, norm=kp.Norm("pre", final=True))
    >>> evolution = kp.propagate(model, kp.kernels.identity(4))
    >>> evolution.diagonal[:, 0], stream_of(evolution).diagonal[:, 0]
    (array([ 1., 10.,  1.]), array([ 1., 10., 91.]))
    """
    model, diagonal = evolution.description, evolution.diagonal
    norm = getattr(model, "norm", None)
    if not isinstance(model, Transformer) or norm is None or not norm.final:
        return Stream(diagonal, norm is not None)
    before, last = diagonal[..., :-1, :], evolution.last_sum
    return Stream(before if last is None else np.concatenate([before, last[..., None, :]], axis=-2), True, True)


def without_final_norm(model: Transformer) -> Transformer:
    """The same network up to its last residual sum.

    >>> import kernelprop as kp
    >>> without_final_norm(kp.Transformer(kp.identity(4), norm=kp.Norm("pre", final=True))).norm.final
    False
    """
    norm = model.norm
    if norm is None or not norm.final:
        return model
    return model.replaced(norm=Norm(norm.place, norm.kind, norm.epsilon))
