"""``dks`` and ``tat``: an activation shaped for a number of nonlinear layers, or for a network of blocks."""

import math
from collections.abc import Callable
from typing import Any

from kernelprop import door
from kernelprop.activations.base import Activation
from kernelprop.activations.rectifiers import LeakyReLU, ReLU
from kernelprop.activations.registry import activation
from kernelprop.activations.shaping.blocks import (
    Blocks,
    local_curvature,
    local_slope,
    negative_slope,
    sequence,
)
from kernelprop.activations.shaping.conditions import dks_conditions, tat_conditions
from kernelprop.activations.shaping.shaped import Shaped, ShapedLeakyReLU
from kernelprop.activations.shaping.solve import solve

Function = str | Activation | Callable[[Any], Any]
ETA, TAU, ZETA = 0.9, 0.3, 1.5


def dks(fn: Function, depth: int, zeta: float = ZETA) -> Shaped:
    """Deep kernel shaping: ``output_scale (phi(input_scale x + input_shift) + output_shift)`` with, for standard
    normal input, mean 0, ``E phi^2 = 1``, ``Q'(1) = 1`` and ``C'(1) = zeta^(1/depth)``, so that the map of
    correlations through ``depth`` nonlinear layers in sequence has slope ``zeta`` at 1.

    Args:
        fn: the activation, by name or as a function on arrays.
        depth: the number of nonlinear layers in sequence.
        zeta: the network's slope, above 1.

    Returns:
        A callable that keeps its input's dtype, an activation like any other; ``.parameters`` has the four
        numbers. Of several solutions it is the one with the smallest output_scale, and where ``phi`` is odd up
        to a constant the one with ``input_shift > 0``.

    Raises:
        ValueError: when the target can't be reached, with the ceiling.

    Source: Martens et al. 2021 (arXiv 2110.01765).

    >>> {name: round(value, 6) for name, value in dks("tanh", depth=36).parameters.items()}
    {'input_scale': 0.151862, 'input_shift': 0.579, 'output_shift': -0.513413, 'output_scale': 9.04154}
    """
    return dks_blocks(fn, sequence(door.count(depth, "depth")), zeta)


def tat(fn: Function, depth: int, *, eta: float | None = None, tau: float | None = None) -> Any:
    """Tailored activation: for a leaky ReLU the negative slope with which ``depth`` layers carry correlation 0 to
    ``eta``; for a smooth function parameters with ``Q(1) = Q'(1) = C'(1) = 1`` and ``C''(1) = tau/depth``.

    Args:
        fn: the activation, by name or as a function on arrays.
        depth: the number of nonlinear layers in sequence.
        eta: for ``"leaky_relu"`` (and ``"relu"``) only, 0.9 if it is not given.
        tau: for smooth functions only, 0.3 if it is not given.

    Returns:
        As for ``dks``; ``.parameters`` of a leaky ReLU has ``negative_slope`` and ``output_scale``.

    Raises:
        ValueError: when the target can't be reached, with the ceiling, or ``eta`` and ``tau`` are mixed up.

    Source: Zhang et al. 2022 (arXiv 2203.08120).

    >>> {name: round(value, 6) for name, value in tat("leaky_relu", depth=36).parameters.items()}
    {'negative_slope': 0.351121, 'output_scale': 1.33435}
    >>> tat("leaky_relu", depth=12)
    Traceback (most recent call last):
    ValueError: eta: 0.9 can't be reached by 12 nonlinear layers; the ceiling, that of the ReLU, is 0.89714805176775:
    use more layers or a smaller eta
    """
    return tat_blocks(fn, sequence(door.count(depth, "depth")), eta=eta, tau=tau)


def dks_blocks(fn: Function, blocks: Blocks, zeta: float = ZETA) -> Shaped:
    """``dks`` for a network of blocks ``(a, b)`` whose correlation maps are ``c -> a c + b C(c)``."""
    phi = _base(fn, "dks")
    zeta = door.real_number(zeta, "zeta")
    slope_excess = local_slope(blocks, zeta) - 1

    def network(slope: float) -> float:
        return math.prod(a + b * slope for a, b in blocks)

    return Shaped(solve(phi, dks_conditions(slope_excess, network)), f"dks({phi.name})")


def tat_blocks(fn: Function, blocks: Blocks, *, eta: float | None = None, tau: float | None = None) -> Any:
    """``tat`` for a network of blocks ``(a, b)`` whose correlation maps are ``c -> a c + b C(c)``."""
    phi = _base(fn, "tat")
    if isinstance(phi, LeakyReLU | ReLU):
        if tau is not None:
            raise ValueError(f"tau: {tau} was given; a leaky ReLU is shaped by eta")
        slope = negative_slope(blocks, door.real_number(ETA if eta is None else eta, "eta"))
        return ShapedLeakyReLU(slope, math.sqrt(2 / (1 + slope**2)))
    if eta is not None:
        raise ValueError(f"eta: {eta} was given; it shapes a leaky ReLU, {phi.name} is shaped by tau")
    curvature = local_curvature(blocks, door.real_number(TAU if tau is None else tau, "tau"))
    unit = curvature / local_curvature(blocks, 1.0)

    def network(reached: float) -> float:
        return reached / curvature * unit

    return Shaped(solve(phi, tat_conditions(curvature, network)), f"tat({phi.name})")


def _base(fn: Function, method: str) -> Activation:
    phi = activation(fn)
    if isinstance(phi, Shaped | ShapedLeakyReLU):
        raise ValueError(f"{method}: {phi.name} is shaped already; pass the activation it was made from")
    return phi
