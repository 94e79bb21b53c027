"""The equations of a block, and of the kernel map that it is at infinite width."""

from collections.abc import Sequence

import numpy as np

from kernelprop.architecture import Transformer
from kernelprop.attention.random_softmax import RandomSoftmax
from kernelprop.descriptions.initialisation import attention_gains
from kernelprop.descriptions.numerals import Term, factor, first, is_one, numeral, product, weighted_sum
from kernelprop.layers.gated_mlp import GatedMLP

NO_RESIDUAL = (0.0, 1.0)


def block_equations(model: Transformer) -> list[str]:
    """What a block does to ``X``, ``(T, d)``.

    >>> import kernelprop as kp
    >>> skips = kp.Residual(attention=(1.0, 0.5), mlp=(1.0, 0.25))
    >>> block_equations(kp.Transformer(kp.espa(8, 4), mlp=kp.MLP("gelu"), residual=skips, norm="pre"))
    ['Z  = X + 0.5 Attn(N(X))', "X' = Z + 0.25 φ(N(Z) W_1) W_2"]
    """
    attention, mlp = _pairs(model)
    reads = "N({})" if _place(model) == "pre" else "{}"
    attended = f"Attn({reads.format('X')})"
    if model.mlp is None:
        return [f"X' = {_normed(model, _sum(attention, 'X', attended))}"]
    if model.parallel:
        terms: list[Term] = [*_terms(attention, "1", "X", attended), ("β₂", mlp[1], _mlp(model, reads.format("X")))]
        return [f"X' = {_normed(model, weighted_sum(terms))}"]
    return [
        f"Z  = {_normed(model, _sum(attention, 'X', attended))}",
        f"X' = {_normed(model, _sum(mlp, 'Z', _mlp(model, reads.format('Z')), '2'))}",
    ]


def kernel_equations(model: Transformer) -> list[str]:
    """What a block does to ``Σ = X Xᵀ/d`` as the width grows (theory: forward recursion)."""
    attention, mlp = _pairs(model)
    reads = "N({})" if _place(model) == "pre" else "{}"
    attended = _attended(model, reads.format("Σ"))
    if model.mlp is None:
        lines = [f"Σ'  = {_normed(model, _squares(attention, 'Σ', attended))}"]
    elif model.parallel:
        terms: list[Term] = [*_terms(attention, "1", "Σ", attended), ("β₂", mlp[1], _dual(model, reads.format("Σ")))]
        lines = [f"Σ'  = {_normed(model, weighted_sum(terms, 2))}"]
    else:
        lines = [
            f"Σ_Z = {_normed(model, _squares(attention, 'Σ', attended))}",
            f"Σ'  = {_normed(model, _squares(mlp, 'Σ_Z', _dual(model, reads.format('Σ_Z')), '2'))}",
        ]
    return lines + _meanings(model)


def _meanings(model: Transformer) -> list[str]:
    lines = []
    if model.norm is not None:
        shift = f" + {numeral(model.norm.epsilon)}" if model.norm.epsilon else ""
        below = f"sqrt((Σ_ii{shift}) (Σ_jj{shift}))" if shift else "sqrt(Σ_ii Σ_jj)"
        lines.append(f"N(Σ)_ij = Σ_ij / {below}")
    if model.mlp is not None:
        scale = factor("σ₁", model.mlp.gain_in, 2)
        shift = "" if isinstance(model.mlp, GatedMLP) else _shift("v₁", model.mlp.bias_in)
        inside = f"{product(scale, '[[Σ_ii, Σ_ij], [Σ_ij, Σ_jj]]')}{shift}"
        lines.append(f"K(Σ)_ij = E[φ(u) φ(v)],  (u, v) ~ N(0, {inside})")
    return lines


def _attended(model: Transformer, kernel: str) -> str:
    gains = attention_gains(model)
    scale = product(factor("σ_V", gains["value"][1], 2), factor("σ_O", gains["output"][1], 2))
    scale = "" if scale == "1" else scale
    operator = model.attention
    if isinstance(operator, RandomSoftmax):
        inner = f"E[A {kernel} Aᵀ]" if operator.heads is None else f"mean_h A_h {kernel} A_hᵀ"
    elif operator.heads is not None:
        inner = f"mean_h A_h {kernel} A_hᵀ"
    else:
        inner = f"A {kernel} Aᵀ"
    return product(scale, inner)


def _mlp(model: Transformer, argument: str) -> str:
    if isinstance(model.mlp, GatedMLP):
        return f"(φ({argument} W_1) ∘ {argument} W_g) W_2"
    inner, outer = (" + b_1" if np.any(model.mlp.bias_in) else ""), (" + b_2" if np.any(model.mlp.bias_out) else "")
    words = f"φ({argument} W_1{inner}) W_2{outer}"
    return f"({words})" if outer else words


def _dual(model: Transformer, kernel: str) -> str:
    mlp = model.mlp
    gate = ""
    if isinstance(mlp, GatedMLP):
        gate = f" ∘ {product(factor('σ_g', mlp.gain_gate, 2), kernel)}"
    words = product(factor("σ₂", mlp.gain_out, 2), f"K({kernel}){gate}")
    shift = "" if isinstance(mlp, GatedMLP) else _shift("v₂", mlp.bias_out)
    return f"({words}{shift})" if shift else words


def _shift(symbol: str, values: np.ndarray) -> str:
    if is_one(values):
        return f" + {numeral(first(values))}" if first(values) else ""
    return f" + {symbol}"


def _pairs(model: Transformer) -> tuple[Sequence, Sequence]:
    if model.residual is None:
        return NO_RESIDUAL, NO_RESIDUAL
    return model.residual.attention, model.residual.mlp


def _terms(pair: Sequence, index: str, skip: str, branch: str) -> list[Term]:
    below = {"1": "₁", "2": "₂"}[index]
    return [(f"α{below}", pair[0], skip), (f"β{below}", pair[1], branch)]


def _sum(pair: Sequence, skip: str, branch: str, index: str = "1") -> str:
    return weighted_sum(_terms(pair, index, skip, branch))


def _squares(pair: Sequence, skip: str, branch: str, index: str = "1") -> str:
    return weighted_sum(_terms(pair, index, skip, branch), 2)


def _place(model: Transformer) -> str | None:
    return None if model.norm is None else model.norm.place


def _normed(model: Transformer, words: str) -> str:
    return f"N({words})" if _place(model) == "post" else words
