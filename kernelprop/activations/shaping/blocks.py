"""What a whole network asks of each activation in it.

A network is a list of blocks, each with the correlation map ``c -> a c + b C(c)``: ``a`` and ``b`` are the
squared weights of skip and branch, ``C`` the activation's own map; attention is taken as the identity. ``n``
nonlinear layers in sequence are ``n`` blocks ``(0, 1)``.
"""

import math
from collections.abc import Callable, Sequence

Blocks = Sequence[tuple[float, float]]


def sequence(depth: int) -> Blocks:
    """``depth`` nonlinear layers in sequence, without a skip."""
    return [(0.0, 1.0)] * depth


def local_slope(blocks: Blocks, zeta: float) -> float:
    """The slope ``C'(1)`` with which the network's slope ``prod (a + b C'(1))`` is ``zeta``.

    Raises:
        ValueError: when no block has a branch, or the target lies below what a linear activation gives.

    >>> round(local_slope(sequence(2), 2.25), 12)
    1.5
    """
    _has_branch(blocks)
    if zeta <= 0:
        raise ValueError(f"zeta: {zeta} can't be reached; a slope is positive")
    linear = sum(math.log(a + b) for a, b in blocks)
    excess = math.log(zeta) - linear
    if excess <= 0:
        raise ValueError(
            f"zeta: {zeta} can't be reached; the network's slope is at least {math.exp(linear):.12g}, what a linear "
            "activation gives, and only that itself: use a larger zeta"
        )
    if all(block == (0.0, 1.0) for block in blocks):
        return zeta ** (1 / len(blocks))

    def gap(log_slope: float) -> float:
        return sum(math.log1p(b * math.expm1(log_slope) / (a + b)) for a, b in blocks) - excess

    upper = excess
    while gap(upper) < 0:
        upper *= 2
    return math.exp(_root(gap, upper))


def local_curvature(blocks: Blocks, tau: float) -> float:
    """The curvature ``C''(1)`` with which the network's is ``tau``, where every block has ``C'(1) = 1``.

    With ``a + b = 1`` the slopes are 1 and curvatures add up: ``C_f''(1) = sum b C''(1)``. Other weights make the
    slope of a block ``a + b``, and each curvature counts times the slopes below it squared and those above it.

    >>> local_curvature(sequence(10), 0.3)
    0.03
    """
    _has_branch(blocks)
    if tau <= 0:
        raise ValueError(f"tau: {tau} can't be reached; the curvature of a nonlinear activation is positive")
    curvature, slope = 0.0, 1.0
    for a, b in blocks:
        curvature = b * slope**2 + (a + b) * curvature
        slope *= a + b
    return tau / curvature


def negative_slope(blocks: Blocks, eta: float) -> float:
    """The slope of the leaky ReLU, scaled by ``sqrt(2/(1+s^2))``, with which the network has ``C_f(0) = eta``.

    Raises:
        ValueError: when even the ReLU, slope 0, stays below ``eta``; the message has what it reaches.

    >>> round(negative_slope(sequence(36), 0.9), 12)
    0.351121259798
    """
    _has_branch(blocks)
    if not 0 < eta < 1:
        raise ValueError(f"eta: {eta} must lie strictly between 0 and 1")
    ceiling = compose(blocks, lambda c: rectifier_map(0.0, c))
    if eta > ceiling:
        raise ValueError(
            f"eta: {eta} can't be reached by {len(blocks)} nonlinear layers; the ceiling, that of the ReLU, is "
            f"{ceiling:.14g}: use more layers or a smaller eta"
        )

    def gap(slope: float) -> float:
        return compose(blocks, lambda c: rectifier_map(slope, c)) - eta

    return 0.0 if eta == ceiling else _root(gap, 1.0)


def compose(blocks: Blocks, correlation_map: Callable[[float], float], start: float = 0.0) -> float:
    """Carry a correlation through the network."""
    for a, b in blocks:
        start = a * start + b * correlation_map(start)
    return start


def rectifier_map(slope: float, c: float) -> float:
    """``C(c)`` of the leaky ReLU with ``E phi^2 = 1``."""
    c = min(max(c, -1.0), 1.0)
    weight = (1 - slope) ** 2 / (math.pi * (1 + slope**2))
    return c + weight * (math.sqrt((1 - c) * (1 + c)) - c * math.acos(c))


def _root(gap: Callable[[float], float], upper: float) -> float:
    # Here, because most networks shape nothing and scipy takes as long to load as all of this package.
    from scipy.optimize import root_scalar

    return float(root_scalar(gap, bracket=(0.0, upper), method="toms748", xtol=1e-15, rtol=1e-15).root)


def _has_branch(blocks: Blocks) -> None:
    if not any(b > 0 for _, b in blocks):
        raise ValueError("blocks: no block has a nonlinear branch of positive weight")
