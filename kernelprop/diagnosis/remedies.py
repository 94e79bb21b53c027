"""Changes to a network that can cure it: each takes the network as it is to another one, or says why it can't."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import equinox as eqx
import numpy as np

from kernelprop.activations.rectifiers import LeakyReLU, ReLU
from kernelprop.activations.shaping.shaped import Shaped, ShapedLeakyReLU
from kernelprop.architecture import Transformer
from kernelprop.attention.random_softmax import RandomSoftmax
from kernelprop.attention.stack import AttentionStack
from kernelprop.balance import ROUNDING, Balance, balance_temperature, residual_scale
from kernelprop.diagnosis.examination import Examination
from kernelprop.diagnosis.trainability import SPREAD
from kernelprop.fitting import SignalFit, fit_espa, fit_uspa
from kernelprop.layers.gains import Gains
from kernelprop.layers.mlp import MLP
from kernelprop.layers.residual import Residual, normalised
from kernelprop.network_shaping import shape_activation

# Branch weights that are tried: 1/√L, and halves of it where that is still too much.
HALVINGS = 3


@dataclass(frozen=True, eq=False)
class Change:
    """A changed network, and in words what was changed."""

    model: Transformer
    words: str


class Refusal(ValueError):
    """Why a change can't be made, whatever else is changed first."""


@dataclass(frozen=True)
class Remedy:
    """One kind of change.

    Attributes:
        name: what it is called.
        cures: the kinds of findings that it is made for.
        versions: of the change for a network, mildest first; a ValueError says why there is none, a `Refusal` that
            no other change makes it possible either.
    """

    name: str
    cures: frozenset[str]
    versions: "Callable[[Transformer, Case], Iterator[Change]]"


@dataclass(frozen=True, eq=False)
class Case:
    """What a remedy may look at: the input, where the loss reads, and the findings about the network as it was."""

    kernel0: np.ndarray
    cotangent: Any
    before: Examination


def residual_versions(model: Transformer, case: Case) -> Iterator[Change]:
    """Skips of weight 1 with branches ``β = 1/√L``, then smaller ones (Noci et al. 2022, section 3).

    Without a norm the skips get ``sqrt(1 − β²)``, so that the variances stay. Where value gradients are far apart
    ``β`` is at most what keeps them within the bound.
    """
    beta = model.depth**-0.5
    if "gradients" in case.before.ills and model.norm is not None:
        beta = min(beta, _even_scale(model, case))
    largest = _largest_branch(model)
    for halving in range(HALVINGS):
        weight = beta / 2**halving
        if largest is None or weight < largest:
            yield _with_branches(model, weight)
    if largest is not None and largest <= beta / 2 ** (HALVINGS - 1):
        raise Refusal(f"the branches have weights of {largest:.3g} already")


def signal_preserving_versions(model: Transformer, case: Case) -> Iterator[Change]:
    """E-SPA and U-SPA in place of the attention, begun where they are nearest to the input (He et al. 2023)."""
    causal = is_causal(model.attention)
    fits: list[tuple[str, SignalFit]] = []
    refusals = []
    for name, fit in (("E-SPA", fit_espa), ("U-SPA", fit_uspa)):
        try:
            fits.append((name, fit(case.kernel0, model.depth, causal=causal)))
        except ValueError as error:
            refusals.append(str(error))
    if not fits:
        raise Refusal(refusals[0])
    for name, found in sorted(fits, key=lambda one: one[1].distance_after):
        symbol = {"gamma0": "γ_0", "rho0": "ρ_0"}[found.parameter]
        end = {"gamma0": "γ_L = 0.005", "rho0": "ρ_L = 0.8"}[found.parameter]
        words = f"attention {name}{'' if causal else ', not causal'}, {symbol} = {_infinite(found.value)} to {end}"
        yield Change(eqx.tree_at(lambda one: one.attention, model, found.attention), words)


def shaped_versions(model: Transformer, case: Case) -> Iterator[Change]:
    """The activation solved for the network's own block map: TAT for (leaky) ReLU, else DKS."""
    if not isinstance(model.mlp, MLP):
        raise Refusal("there is no plain MLP whose activation could be shaped")
    if isinstance(model.mlp.activation, Shaped | ShapedLeakyReLU):
        raise Refusal("the activation is shaped already")
    method = "tat" if isinstance(model.mlp.activation, LeakyReLU | ReLU) else "dks"
    unit = model if model.norm is not None else _with_unit_gains(model)
    shaped = shape_activation(unit, method)
    gains = "" if unit is model else ", gains of the MLP 1"
    yield Change(shaped, f"activation {shaped.mlp.activation.name}, {_numbers(shaped.mlp.activation)}{gains}")


def temperature_versions(model: Transformer, case: Case) -> Iterator[Change]:
    """The logits times the ``τ`` that balances query and value gradients; one a layer where one is not enough."""
    balance = balance_temperature(model, case.kernel0, case.cotangent)
    # A layer whose own τ is far above the common one stays dead.
    enough = balance.temperature >= ROUNDING["bfloat16"] * np.nanmax(balance.by_layer)
    if not enough and not np.all(np.isfinite(balance.by_layer)):
        raise ValueError("some layers' queries have a gradient of exactly 0, which no temperature changes")
    yield _with_temperature(model, balance, common=enough)


REMEDIES = (
    Remedy("residual scale", frozenset({"collapse", "growth", "shrinkage", "queries", "gradients"}), residual_versions),
    Remedy(
        "signal-preserving attention",
        frozenset({"collapse", "growth", "shrinkage", "queries", "gradients"}),
        signal_preserving_versions,
    ),
    Remedy(
        "shaped activation", frozenset({"collapse", "growth", "shrinkage", "queries", "gradients"}), shaped_versions
    ),
    Remedy("temperature", frozenset({"queries"}), temperature_versions),
)


def is_causal(operator: Any) -> bool:
    """Whether no position attends to a later one.

    >>> import kernelprop as kp
    >>> is_causal(kp.espa(4, 2)), is_causal(kp.uniform(4))
    (True, False)
    """
    if isinstance(operator, RandomSoftmax):
        return not np.any(np.triu(np.asarray(operator.mask), 1))
    layers = list(operator) if isinstance(operator, AttentionStack) else [operator]
    return not any(np.any(np.triu(layer.as_matrix(), 1)) for layer in layers)


def _even_scale(model: Transformer, case: Case) -> float:
    """The largest branch weight whose value gradients are near enough; the scale comes first of all changes."""
    try:
        return residual_scale(model, case.kernel0, SPREAD**2, case.cotangent)
    except ValueError as error:
        raise Refusal(str(error)) from error


def _largest_branch(model: Transformer) -> float | None:
    """The largest weight of a branch beside a skip; None where some sublayer has no skip."""
    if model.residual is None:
        return None
    pairs = [model.residual.attention] + ([model.residual.mlp] if model.mlp is not None else [])
    if any(np.any(np.asarray(alpha) == 0) for alpha, _ in pairs):
        return None
    return float(max(np.max(np.abs(beta)) for _, beta in pairs))


def _with_branches(model: Transformer, beta: float) -> Change:
    if model.norm is None:
        residual = normalised(beta)
        alpha = f"{float(residual.attention[0]):.4g}"
    else:
        residual, alpha = Residual(attention=(1.0, beta), mlp=(1.0, beta)), "1"
    words = f"skips of weight {alpha}, branches of weight {beta:.4g}"
    return Change(model.replaced(residual=residual), words)


def _with_unit_gains(model: Transformer) -> Transformer:
    """A shaped activation keeps variance 1 itself; gains that did so for the plain one would undo it."""
    old = model.mlp
    if np.all(old.gain_in == 1) and np.all(old.gain_out == 1):
        return model
    return model.replaced(mlp=MLP(old.activation, old.expansion, bias_in=old.bias_in, bias_out=old.bias_out))


def _with_temperature(model: Transformer, balance: Balance, *, common: bool) -> Change:
    factor = np.full(model.depth, balance.temperature) if common else balance.by_layer
    gains = Gains(temperature=factor) if model.gains is None else replace(model.gains, temperature=factor)
    said = f"{balance.temperature:.4g}" if common else f"{factor.min():.4g} to {factor.max():.4g}, one a layer"
    return Change(model.replaced(gains=gains), f"temperature {said}: the logits times it")


def _infinite(value: float) -> str:
    return "∞" if np.isinf(value) else f"{value:.4g}"


def _numbers(activation: Any) -> str:
    return ", ".join(f"{name} {float(value):.4g}" for name, value in activation.parameters.items())
