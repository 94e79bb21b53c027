"""``shape_activation``: an activation solved for the block map of the network that it stands in.

With attention taken as the identity, positions of one common variance ``q`` keep one. A block then acts on a
correlation ``c`` of the residual stream as ``c → a c + b C(c)``, ``a + b = 1``, where ``C`` is the activation's own
map and, with ``g = (σ_V σ_O)²``, ``s = (σ₁ σ₂)²`` and ``N`` the division by ``q + ε`` (1 without a norm):

- in sequence: ``q_Z = α₁² q + β₁² g N(q)``, then ``a : b = α₂² q_Z : β₂² σ₂² E φ²``;
- parallel: ``a : b = α₁² q + β₁² g N(q) : β₂² σ₂² E φ²``;
- ``q`` is the sum of both parts, under a Post-norm divided by itself, so that only the ratio stays.

Under Pre-norms ``q`` grows from block to block while ``φ`` sees variance ``σ₁²``, so that the share ``b`` falls.
"""

from dataclasses import dataclass, replace
from typing import Any

import equinox as eqx
import numpy as np

from kernelprop.activations import dks_blocks, tat_blocks
from kernelprop.activations.rectifiers import LeakyReLU, ReLU
from kernelprop.activations.shaping.methods import ZETA
from kernelprop.activations.shaping.shaped import Shaped
from kernelprop.architecture import Transformer
from kernelprop.layers.mlp import MLP

METHODS = ("dks", "tat")
# Variances that agree to this are one: what rounding adds over many blocks.
ROUNDING = 1e-12


@dataclass(frozen=True)
class BlockMaps:
    """What each block does to a correlation, and what its activation sees.

    Attributes:
        shares: ``(a, b)`` of every block, ``a + b = 1``.
        variances: the variance in front of the activation in every block.
    """

    shares: tuple[tuple[float, float], ...]
    variances: tuple[float, ...]


def shape_activation(
    model: Transformer,
    method: str = "dks",
    *,
    zeta: float | None = None,
    eta: float | None = None,
    tau: float | None = None,
) -> Transformer:
    """Return the same network with its activation solved for the network's own block map.

    Attention is taken as the identity and the input kernel as one of unit diagonal. The blocks' maps
    ``c → a c + b C(c)`` come from the residual weights, norms and gains at hand (`block_maps`), and their number
    from the network.

    Args:
        model: the network; its MLP's activation is the one that is shaped.
        method: ``"dks"``, slope ``C_f'(1) = zeta`` of the whole network, or ``"tat"``: for a (leaky) ReLU
            ``C_f(0) = eta``, for smooth functions ``C_f''(1) = tau``.
        zeta: for ``"dks"``, 1.5 if not given.
        eta: for ``"tat"`` of a leaky ReLU, 0.9 if not given.
        tau: for ``"tat"`` of smooth functions, 0.3 if not given.

    Raises:
        ValueError: for a target that can't be reached, with the ceiling; for a network without an MLP, with a
            gate or biases, whose map is another; and where a smooth activation would see different variances
            in different blocks, since it can be shaped for one.

    Source: Martens et al. 2021 (arXiv 2110.01765), Zhang et al. 2022 (arXiv 2203.08120).

    >>> import kernelprop as kp
    >>> shaped = shape_activation(kp.Transformer(kp.identity(2), 36, mlp=kp.MLP("leaky_relu")), "tat")
    >>> round(shaped.mlp.activation.parameters["negative_slope"], 12)
    0.351121259798
    >>> shape_activation(kp.Transformer(kp.identity(2), 12, mlp=kp.MLP("leaky_relu")), "tat")
    Traceback (most recent call last):
    ValueError: eta: 0.9 can't be reached by 12 nonlinear layers; the ceiling, that of the ReLU, is 0.89714805176775:
    use more layers or a smaller eta
    """
    phi = _shapeable(model)
    _refuse_foreign(method, zeta, eta, tau)
    maps = block_maps(model, method)
    shares = [share for share in maps.shares if share[1] > 0] or list(maps.shares)
    if method == "dks":
        shaped: Any = dks_blocks(phi, shares, ZETA if zeta is None else zeta)
    else:
        shaped = tat_blocks(phi, shares, eta=eta, tau=tau)
    if isinstance(shaped, Shaped):
        shaped = _for_variance(shaped, _one_variance(maps))
    mlp = eqx.tree_at(lambda one: one.activation, model.mlp, shaped)
    return eqx.tree_at(lambda one: one.mlp, model, mlp)


def block_maps(model: Transformer, method: str = "dks") -> BlockMaps:
    """Follow the variance through the blocks, and read off every block's shares of skip and activation.

    The activation is taken to be shaped for what it sees, ``E φ² = 1``; a leaky ReLU under ``"tat"`` has ``E φ²``
    equal to the variance that it sees.

    >>> import kernelprop as kp
    >>> residual = kp.Residual(attention=(1.0, 0.0), mlp=(1.0, 1.0))
    >>> block_maps(kp.Transformer(kp.identity(2), 3, kp.MLP("gelu"), residual, "pre")).shares
    ((0.5, 0.5), (0.6666666666666666, 0.3333333333333333), (0.75, 0.25))
    """
    homogeneous = method == "tat" and isinstance(_shapeable(model), LeakyReLU | ReLU)
    q = _input_variance(model)
    shares, variances = [], []
    for layer in range(model.depth):
        skip, seen = _in_front(model, layer, q)
        mlp, beta = model.mlp, 1.0 if model.residual is None else model.residual.mlp[1][layer]
        seen = float(mlp.gain_in[layer] ** 2) * seen
        branch = float(beta**2 * mlp.gain_out[layer] ** 2) * (seen if homogeneous else 1.0)
        total = skip + branch
        if not total > 0:
            raise ValueError(f"shape_activation: block {layer + 1}: skip and branch both have weight 0")
        shares.append((skip / total, branch / total))
        variances.append(seen)
        q = _normed(model, total, "post")
    return BlockMaps(tuple(shares), tuple(variances))


def _in_front(model: Transformer, layer: int, q: float) -> tuple[float, float]:
    """What reaches the sum beside the MLP's branch, and the variance that enters ``W₁``."""
    inside = _normed(model, q, "pre")
    gains = model.gains
    branch = inside if gains is None else inside * float((gains.value[layer] * gains.output[layer]) ** 2)
    if model.residual is None:
        after = branch
    else:
        alpha, beta = (float(weight[layer]) for weight in model.residual.attention)
        after = alpha**2 * q + beta**2 * branch
    if model.parallel:
        return after, inside
    after = _normed(model, after, "post")
    skip = 0.0 if model.residual is None else float(model.residual.mlp[0][layer]) ** 2
    return skip * after, _normed(model, after, "pre")


def _normed(model: Transformer, q: float, place: str) -> float:
    norm = model.norm
    return q / (q + norm.epsilon) if norm is not None and norm.place == place else q


def _input_variance(model: Transformer) -> float:
    if model.positions is None:
        return 1.0
    diagonal = np.diagonal(model.positions)
    if np.ptp(diagonal) > ROUNDING * (1 + diagonal.max()):
        raise ValueError(
            f"shape_activation: positions add {diagonal.min():g} to {diagonal.max():g} to the variances; an activation "
            "is shaped for one variance: use positions of constant diagonal"
        )
    return 1.0 + float(diagonal[0])


def _shapeable(model: Transformer) -> Any:
    mlp = model.mlp
    if mlp is None:
        raise ValueError("shape_activation: the network has no MLP whose activation could be shaped")
    if not isinstance(mlp, MLP):
        raise ValueError(
            f"shape_activation: the map of a {type(mlp).__name__} is the activation's times the gate's, which neither "
            "method shapes; use kp.MLP"
        )
    for name in ("bias_in", "bias_out"):
        if np.any(getattr(mlp, name)):
            raise ValueError(f"shape_activation: {name} adds a common part to every kernel; shaping wants it 0")
    return mlp.activation


def _refuse_foreign(method: str, zeta: float | None, eta: float | None, tau: float | None) -> None:
    if method not in METHODS:
        raise ValueError(f"shape_activation: method {method!r} is unknown; use {' or '.join(map(repr, METHODS))}")
    foreign = {"eta": eta, "tau": tau} if method == "dks" else {"zeta": zeta}
    for name, value in foreign.items():
        if value is not None:
            raise ValueError(f"{name}: {value} was given; it has no meaning for method {method!r}")


def _one_variance(maps: BlockMaps) -> float:
    low, high = min(maps.variances), max(maps.variances)
    if high - low > ROUNDING * high:
        where = 1 + int(np.argmax(np.abs(np.array(maps.variances) - maps.variances[0]) > ROUNDING * high))
        raise ValueError(
            f"shape_activation: the variance in front of the activation is {maps.variances[0]:.10g} in block 1 and "
            f"{maps.variances[where - 1]:.10g} in block {where}; a smooth activation is shaped for one: use norm='pre' "
            "or 'post' with epsilon=0, or residual weights with alpha² + beta² = 1"
        )
    return maps.variances[0]


def _for_variance(shaped: Shaped, variance: float) -> Shaped:
    """The same activation for inputs of another variance than 1: ``x`` is divided by its root."""
    if variance == 1.0:
        return shaped
    affine = replace(shaped.affine, input_scale=shaped.affine.input_scale / float(np.sqrt(variance)))
    return Shaped(affine, shaped.label)
