"""``design``: from a few numbers to a network that keeps its kernel."""

from typing import Any, Literal

import jax.numpy as jnp
import numpy as np

from kernelprop import door, kernels
from kernelprop.activations import Activation, activation
from kernelprop.activations.rectifiers import LeakyReLU, ReLU
from kernelprop.architecture import Transformer
from kernelprop.attention.espa import espa
from kernelprop.attention.schedules import espa_schedule, uspa_schedule
from kernelprop.attention.uspa import uspa
from kernelprop.designs.design import Design
from kernelprop.fitting import SignalFit, fit_espa, fit_uspa
from kernelprop.infinite import propagate
from kernelprop.layers.mlp import MLP
from kernelprop.network_shaping import shape_activation
from kernelprop.precision import in_double

PARAMETERS = {"espa": "gamma", "uspa": "rho"}


def design(
    length: int,
    depth: int,
    *,
    causal: bool = True,
    activation: Any = "gelu",
    kernel0: Any = None,
    attention: Literal["espa", "uspa"] = "espa",
    gamma: float = 0.005,
    rho: float = 0.8,
    shaping: str | None = "auto",
    residual: Any = None,
    norm: Any = None,
    **targets: float,
) -> Design:
    """Design a deep network without collapse: signal-preserving attention and a shaped activation.

    Args:
        length: the number of positions ``T``.
        depth: the number of blocks ``L``.
        causal: whether a position attends only to itself and those before it.
        activation: of the MLPs; None is attention alone.
        kernel0: the true input kernel, ``(T, T)``, to whose scale and correlations the schedule's start is fitted;
            None is the identity.
        attention: ``"espa"`` (correlation falls with distance) or ``"uspa"`` (the same for all pairs).
        gamma: the last layer's ``γ_L`` of E-SPA.
        rho: the last layer's ``ρ_L`` of U-SPA.
        shaping: ``"dks"``, ``"tat"``, None for the activation as it is, its variance kept by ``W_2``'s gain; ``"auto"``
            is TAT for (leaky) ReLU and DKS for the others.
        residual: the weights of skips, as for `Transformer`; None is no skip at all.
        norm: a `Norm`, its place, or None.
        **targets: ``zeta``, ``eta`` or ``tau`` of the shaping, as for `shape_activation`.

    Returns:
        The network with its schedule and its kernels; ``.save(path)`` writes what it takes to build it elsewhere.

    Raises:
        ValueError: for wrong numbers, a kernel that has another number of positions, a target that can't be
            reached, and a non-causal schedule that no softmax makes.

    Source: He et al. 2023 (arXiv 2302.10322).

    >>> made = design(16, depth=12, activation=None)
    >>> made.distance(made.network) < 1e-12
    True
    """
    length, depth = door.count(length, "design: length"), door.count(depth, "design: depth")
    if attention not in PARAMETERS:
        raise ValueError(f"design: attention {attention!r} is unknown; use 'espa' or 'uspa'")
    end = gamma if attention == "espa" else rho
    fit = None if kernel0 is None else _fit(attention, kernel0, length, depth, end, causal)
    operator = _operator(attention, length, depth, end, causal) if fit is None else fit.attention
    scaled = kernels.identity(length) if fit is None else np.asarray(kernel0, np.float64) * fit.scale
    schedule = _schedule(attention, depth, end, fit)
    model = _network(operator, activation, shaping, targets, residual, norm)
    ends = [0, depth]
    alone = propagate(Transformer(operator), scaled, ends)
    bare = model.mlp is None and model.residual is None and model.norm is None
    return Design(
        model=model,
        kernel0=scaled,
        parameter=PARAMETERS[attention],
        schedule=schedule,
        prescribed=np.stack([_prescribed(attention, length, value) for value in schedule[[0, -1]]]),
        attention_alone=alone,
        network=alone if bare else propagate(model, scaled, ends),
        fit=fit,
    )


def _fit(attention: str, kernel0: Any, length: int, depth: int, end: float, causal: bool) -> SignalFit:
    if np.shape(kernel0) != (length, length):
        raise ValueError(f"design: kernel0: shape {np.shape(kernel0)} does not fit length={length}")
    return (fit_espa if attention == "espa" else fit_uspa)(kernel0, depth, end, causal)


def _operator(attention: str, length: int, depth: int, end: float, causal: bool) -> Any:
    return (espa if attention == "espa" else uspa)(length, depth, end, causal=causal)


def _schedule(attention: str, depth: int, end: float, fit: SignalFit | None) -> np.ndarray:
    if attention == "espa":
        return np.minimum.accumulate(espa_schedule(depth, end, np.inf if fit is None else fit.value))
    return np.maximum.accumulate(uspa_schedule(depth, end, 0.0 if fit is None else fit.value))


def _prescribed(attention: str, length: int, value: float) -> np.ndarray:
    return kernels.exponential(length, value) if attention == "espa" else kernels.equicorrelated(length, value)


def _network(operator: Any, fn: Any, shaping: str | None, targets: dict, residual: Any, norm: Any) -> Transformer:
    if fn is None:
        if targets:
            raise ValueError(f"design: {next(iter(targets))} was given, but there is no activation to shape")
        return Transformer(operator, residual=residual, norm=norm)
    phi = activation(fn)
    if shaping is not None:
        method = _method(phi) if shaping == "auto" else shaping
        return shape_activation(Transformer(operator, mlp=MLP(phi), residual=residual, norm=norm), method, **targets)
    if targets:
        raise ValueError(f"design: {next(iter(targets))} was given, but shaping is None")
    return Transformer(operator, mlp=MLP(phi, gain_out=_kept(phi)), residual=residual, norm=norm)


@in_double
def _kept(phi: Activation) -> float:
    """The gain behind an activation that gives unit variance back: ``1/sqrt(E φ²)``."""
    return float(1 / jnp.sqrt(phi.second_moment(jnp.ones(()))))


def _method(phi: Activation) -> str:
    return "tat" if isinstance(phi, LeakyReLU | ReLU) else "dks"
