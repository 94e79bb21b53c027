"""Attention operators in words."""

from functools import singledispatch
from typing import Any

import numpy as np

from kernelprop.attention.block_diagonal import BlockDiagonal
from kernelprop.attention.dense import Dense
from kernelprop.attention.identity import Identity
from kernelprop.attention.mixture import Mixture
from kernelprop.attention.random_softmax import RandomSoftmax
from kernelprop.attention.semiseparable import Semiseparable
from kernelprop.attention.sliding_window import SlidingWindow
from kernelprop.attention.stack import AttentionStack
from kernelprop.attention.uniform import Uniform
from kernelprop.descriptions.numerals import is_one, listed, numeral, weighted_sum


def operator_lines(operator: Any) -> list[str]:
    """What the attention matrix of each layer is, a line for each thing to know.

    >>> import kernelprop as kp
    >>> operator_lines(kp.uniform(4, causal=True))
    ['A: causal mean, A_ij = 1/(i+1) for j <= i']
    """
    return layer_lines(operator.layers if isinstance(operator, AttentionStack) else operator)


def realisation(operator: Any) -> str:
    """How a softmax layer makes the matrix.

    >>> import kernelprop as kp
    >>> realisation(kp.dense([[1.0, -0.5], [0.0, 1.0]]))
    'A has negative entries: no softmax makes it'
    """
    layer = operator.layers if isinstance(operator, AttentionStack) else operator
    matrix = "A"
    while isinstance(layer, BlockDiagonal | Mixture):
        matrix = "A°" if isinstance(layer, Mixture) and layer.value_skip else matrix
        layer = layer.inner
    if _has_negative(layer):
        return f"{matrix} has negative entries: no softmax makes it"
    return f"as softmax: {matrix} = D softmax(B + mask), D = {matrix} 1, B = log({matrix}_ij/D_i), queries 0"


def _has_negative(layer: Any) -> bool:
    """By the parts of a structure: they have one sign where the matrix has."""
    if isinstance(layer, Semiseparable):
        return bool(np.any(layer.left < 0) or np.any(layer.right < 0))
    return isinstance(layer, Dense) and bool(np.any(layer.entries < 0))


@singledispatch
def layer_lines(layer: Any) -> list[str]:
    """The words of one structure; of a stack, of all its layers at once."""
    heads = "" if layer.heads is None else f", one for each of {layer.heads} heads"
    return [f"A: given matrices, ({layer.length}, {layer.length}){heads}"]


@layer_lines.register
def _(layer: Identity) -> list[str]:
    return ["A = I: every position attends to itself alone"]


@layer_lines.register
def _(layer: Uniform) -> list[str]:
    return [f"A: uniform, every entry 1/{layer.length}"]


@layer_lines.register
def _(layer: SlidingWindow) -> list[str]:
    if layer.after == 0:
        return [f"A: even over the last {layer.before + 1} positions"]
    return [f"A: even over the {layer.before} positions before, the own one and {layer.after} after it"]


@layer_lines.register
def _(layer: Semiseparable) -> list[str]:
    numbers = layer.origin.numbers
    if layer.origin.name == "espa":
        gammas = np.append(np.atleast_1d(numbers["gamma_before"])[:1], numbers["gamma_after"])
        return [
            "A_l = F_l F_(l-1)⁻¹, F Fᵀ = Σ, F lower triangular: causal E-SPA, which takes one of the kernels",
            "Σ_l = exp(-γ_l |i-j|) to the next (He et al. 2023)",
            f"γ_0 to γ_{len(gammas) - 1}: {listed(gammas)}",
        ]
    if layer.origin.name == "uspa":
        rhos = np.append(np.atleast_1d(numbers["rho_before"])[:1], numbers["rho_after"])
        return [
            "A_l = F_l F_(l-1)⁻¹, F Fᵀ = Σ, F lower triangular: causal U-SPA, which takes one of the kernels",
            "Σ_l = (1-ρ_l) I + ρ_l 11ᵀ to the next (He et al. 2023)",
            f"ρ_0 to ρ_{len(rhos) - 1}: {listed(rhos)}",
        ]
    return ["A: causal mean, A_ij = 1/(i+1) for j <= i"]


@layer_lines.register
def _(layer: Mixture) -> list[str]:
    mixed = weighted_sum([("α", layer.alpha, "I"), ("β", layer.beta, "A°")])
    lines = [f"A = {mixed}" + (", the identity as a skip of the values (Value-SkipInit)" if layer.value_skip else "")]
    lines += [f"{name} by layer: {listed(w)}" for name, w in (("α", layer.alpha), ("β", layer.beta)) if not is_one(w)]
    inner = [line.replace("A_ij", "A°_ij").replace("A_l", "A°_l") for line in layer_lines(layer.inner)]
    return [*lines, *(line.replace("A:", "A°:").replace("A =", "A° =") for line in inner)]


@layer_lines.register
def _(layer: BlockDiagonal) -> list[str]:
    copies = f"{layer.copies} sequences of {layer.inner.length} positions, none attends to another; inside each:"
    return [copies, *layer_lines(layer.inner)]


@layer_lines.register
def _(layer: RandomSoftmax) -> list[str]:
    weights = [("α", layer.identity_weight, "I"), ("β", layer.softmax_weight, "D P" if _rescaled(layer) else "P")]
    weights.append(("γ", -layer.centre_weight, "D P_0" if _rescaled(layer) else "P_0"))
    below = {"sqrt": "sqrt(d_k)", "linear": "d_k"}[layer.logit_scale]
    causal = np.array_equal(layer.mask, np.tri(layer.length, dtype=bool))
    masked = " + causal mask" if causal else "" if np.all(layer.mask) else " + mask"
    bias = " + B" if np.any(layer.bias) else ""
    tau = "" if float(layer.tau) == 1 else f"{numeral(layer.tau)} "
    lines = [
        f"A = {weighted_sum(weights)}, drawn anew in every layer and head",
        f"P = softmax({tau}Q Kᵀ/{below}{bias}{masked}), Q and K = what enters the branch times W_Q and W_K",
    ]
    if float(layer.centre_weight):
        lines.append(f"P_0 = softmax(0{bias}{masked})")
    if layer.frequencies is not None:
        lines.append(f"rotary positions, {len(layer.frequencies)} frequencies: {listed(layer.frequencies)}")
    if layer.heads is None:
        lines.append(f"infinitely many heads: means over {layer.draws} draws a layer, {layer.chains} independent runs")
    else:
        lines.append(f"{layer.heads} heads: {layer.chains} independent random networks")
    return lines


def _rescaled(layer: RandomSoftmax) -> bool:
    return layer.rescale is not None
