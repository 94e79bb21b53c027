"""A scalar function under a Gaussian integral: with its kinks, its smooth intervals and its derivative."""

from collections.abc import Callable
from functools import cached_property, lru_cache, partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from kernelprop.activations.panels import follows_octaves, smooth_panels
from kernelprop.activations.sampling import sample


class Integrand:
    """``f`` with the places where it isn't smooth; one object a function, so that what was seen is kept."""

    def __init__(self, function: Callable[[Array], Array], kinks: tuple[float, ...]):
        self.function = function
        self.declared = kinks

    @cached_property
    def _seen(self) -> tuple[np.ndarray, tuple[float, ...]]:
        return smooth_panels(partial(sample, self.function), self.declared)

    @property
    def ends(self) -> np.ndarray:
        """Sorted ends of the intervals on which the function is smooth."""
        return self._seen[0]

    @property
    def kinks(self) -> tuple[float, ...]:
        """Where the function has a kink or jumps: what was declared and what was found."""
        return self._seen[1]

    @cached_property
    def graded(self) -> bool:
        """Whether intervals that halve towards 0 suit the function at every scale: one rule for all variances."""
        return set(self.kinks) <= {0.0} and follows_octaves(partial(sample, self.function))

    @cached_property
    def derivative(self) -> "Integrand":
        """``f'`` by automatic differentiation.

        Raises:
            ValueError: where the function jumps, or its automatic derivative isn't the slope of its values.
        """
        self._refuse_jumps()
        slope = Integrand(partial(_slope, self.function), self.kinks)
        self._refuse_other_slope(slope)
        return slope

    @cached_property
    def moment(self) -> "Integrand":
        """``u f'(u)``, which is what a change of the variance of ``u`` brings."""
        slope = self.derivative
        return _Known(partial(_times_argument, slope.function), slope)

    def _refuse_jumps(self) -> None:
        for kink in self.kinks:
            steps = np.array([1e-12, -1e-12, 1e-6, -1e-6]) * max(1.0, abs(kink))
            above, below, further_above, further_below = sample(self.function, kink + steps)
            rise, noise = abs(above - below), 1e-13 * max(abs(above), abs(below))
            # Across a kink the rise falls with the step, across a jump it stays.
            if rise > noise and rise > 0.3 * abs(further_above - further_below):
                raise ValueError(
                    f"activation: the function jumps from {below:.6g} to {above:.6g} at x = {kink:.9g}; "
                    "it has no derivative there, so Kdot isn't finite"
                )

    def _refuse_other_slope(self, slope: "Integrand") -> None:
        ends = np.union1d(self.ends, slope.ends)
        ends = ends[np.abs(ends) <= 32]
        ends = ends[np.diff(ends, prepend=-np.inf) > 1e-9]
        nodes, weights = np.polynomial.legendre.leggauss(16)
        half = np.diff(ends) / 2
        points = (ends[:-1] + half)[:, None] + half[:, None] * nodes
        rise = half * (sample(slope.function, points) @ weights)
        # Just inside each interval, for a function whose value at a kink belongs to neither side.
        inset = 1e-13 * np.maximum(half, np.abs(ends[:-1]))
        start, stop = sample(self.function, np.stack([ends[:-1] + inset, ends[1:] - inset]))
        wrong = np.abs(stop - start - rise) > 1e-6 * np.maximum(np.abs(stop), np.abs(start)) + 1e-6 * half
        if wrong.any():
            at = int(np.argmax(wrong))
            raise ValueError(
                f"activation: between x = {ends[at]:.6g} and {ends[at + 1]:.6g} the function rises by "
                f"{stop[at] - start[at]:.6g}, its derivative as JAX computes it says {rise[at]:.6g}; "
                "the dual of a derivative that isn't the function's own is not defined"
            )


class _Known(Integrand):
    """A function that is smooth where another one is."""

    def __init__(self, function: Callable[[Array], Array], like: Integrand):
        super().__init__(function, like.declared)
        self.__dict__ |= {"_seen": (like.ends, like.kinks), "graded": like.graded}


@lru_cache(maxsize=128)
def integrand(function: Callable[[Array], Array], kinks: tuple[float, ...] = ()) -> Integrand:
    """The one ``Integrand`` of a function and its declared kinks."""
    return Integrand(function, kinks)


def _slope(function: Callable[[Array], Array], x: Array) -> Array:
    return jax.jvp(function, (x,), (jnp.ones_like(x),))[1]


def _times_argument(function: Callable[[Array], Array], x: Array) -> Array:
    return x * function(x)
