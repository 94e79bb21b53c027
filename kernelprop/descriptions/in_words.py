"""``describe``: a network in words and equations, for a reader at a terminal."""

import textwrap
from typing import Any

import numpy as np

from kernelprop.activations import Activation
from kernelprop.activations.shaping.shaped import Shaped, ShapedLeakyReLU
from kernelprop.architecture import Transformer
from kernelprop.descriptions.equations import block_equations, kernel_equations
from kernelprop.descriptions.initialisation import attention_gains, initialisation, is_random
from kernelprop.descriptions.numerals import first, is_one, listed, numeral
from kernelprop.descriptions.operator_words import operator_lines, realisation
from kernelprop.layers.gated_mlp import GatedMLP
from kernelprop.network_shaping import block_maps

WIDTH = 100
FORMULAS = {
    "linear": "x",
    "square": "x²",
    "relu": "max(x, 0)",
    "erf": "erf(x)",
    "gelu": "x Φ(x), Φ the normal distribution function (exact form)",
    "gelu_tanh": "x (1 + tanh(sqrt(2/π) (x + 0.044715 x³)))/2",
    "sin": "sin x",
    "cos": "cos x",
    "tanh": "tanh x",
    "sigmoid": "1/(1 + exp(-x))",
    "softplus": "log(1 + exp(x))",
    "silu": "x/(1 + exp(-x))",
}


def describe(model: Transformer) -> str:
    """What a network is: its blocks, its attention, how every weight starts, and what becomes of a kernel.

    Args:
        model: the network.

    Returns:
        Text of at most 100 columns; ``T`` positions, width ``d``, ``H`` heads of width ``d_k``.

    >>> import kernelprop as kp
    >>> print(describe(kp.Transformer(kp.uniform(8), depth=3)))
    3 blocks over 8 positions, attention only.
    <BLANKLINE>
    Block
      X' = Attn(X)
      Attn(X) = A X W_V W_O
    <BLANKLINE>
    Attention
      A: uniform, every entry 1/8
      as softmax: A = D softmax(B + mask), D = A 1, B = log(A_ij/D_i), queries 0
    <BLANKLINE>
    Initialisation (d: width, H heads of width d_k; entries independent, mean 0; no biases)
      W_Q  (d, H d_k)  variance 0          so that the logits are 0, the attention A
      W_K  (d, H d_k)  variance 1/d
      W_V  (d, H d_k)  variance 1/d
      W_O  (H d_k, d)  variance 1/(H d_k)
    <BLANKLINE>
    Kernel at infinite width, Σ = X Xᵀ/d, layer by layer
      Σ'  = A Σ Aᵀ
    """
    sections = [
        [_headline(model)],
        ["Block", *_block(model)],
        ["Attention", *_attention(model)],
        *([["Activation", *activation_lines(model.mlp.activation)]] if model.mlp is not None else []),
        [_initialisation_title(model), *_weights(model)],
        *([["By layer", *layers]] if (layers := _by_layer(model)) else []),
        ["Kernel at infinite width, Σ = X Xᵀ/d, layer by layer", *kernel_equations(model), *_composition(model)],
    ]
    return "\n\n".join(_wrapped(section) for section in sections)


def _wrapped(section: list[str]) -> str:
    title, *lines = section
    return "\n".join([title, *(_line(line) for line in lines)])


def _line(line: str) -> str:
    return textwrap.fill(
        line, WIDTH, initial_indent="  ", subsequent_indent="    ", break_long_words=False, break_on_hyphens=False,
        replace_whitespace=False, drop_whitespace=True,
    )  # fmt: skip


def _headline(model: Transformer) -> str:
    blocks = "1 block" if model.depth == 1 else f"{model.depth} blocks"
    parts = [f"{blocks} over {model.length} positions"]
    if model.mlp is None:
        parts.append("attention only")
    if model.parallel:
        parts.append("attention and MLP in parallel")
    return ", ".join(parts) + "."


def _block(model: Transformer) -> list[str]:
    lines = [
        *block_equations(model),
        "Attn(X) = A X W_V W_O" if _one_matrix(model) else "Attn(X) = Σ_h A_h X W_V,h W_O,h",
    ]
    if model.norm is not None:
        kind = {"layer": "LayerNorm", "rms": "RMSNorm"}[model.norm.kind]
        behind = "; once more behind the last block" if model.norm.final else ""
        lines.append(f"N: {kind}, epsilon {numeral(model.norm.epsilon)}{behind}")
    if model.residual is None:
        lines.append("no skip connections" if model.mlp is not None or model.norm is not None else "")
    if model.positions is not None:
        diagonal = np.diagonal(model.positions)
        lines.append(f"positional embeddings add {numeral(diagonal.mean())} to the input's variance")
    return [line for line in lines if line]


def _one_matrix(model: Transformer) -> bool:
    return model.attention.heads is None and not is_random(model)


def _attention(model: Transformer) -> list[str]:
    lines = operator_lines(model.attention)
    if not is_random(model):
        lines.append(realisation(model.attention))
    if model.gains is not None and np.any(model.gains.temperature != 1):
        temperature = model.gains.temperature
        lines.append(f"temperature: the logits times {numeral(first(temperature)) if is_one(temperature) else 'τ'}")
    return lines


def activation_lines(phi: Activation) -> list[str]:
    """An activation's formula, and the numbers of a shaped one.

    >>> import kernelprop as kp
    >>> activation_lines(kp.activation("relu"))
    ['φ(x) = max(x, 0)']
    """
    if isinstance(phi, ShapedLeakyReLU):
        return ["φ(x) = output_scale (max(x, 0) + negative_slope min(x, 0))", *_parameters(phi)]
    if isinstance(phi, Shaped):
        base = phi.affine.base
        return [
            f"φ(x) = output_scale (f(input_scale x + input_shift) + output_shift), {phi.name}",
            f"f(x) = {_formula(base)}",
            *_parameters(phi),
        ]
    return [f"φ(x) = {_formula(phi)}"]


def _formula(phi: Any) -> str:
    if phi.name == "leaky_relu":
        return f"max(x, 0) + {numeral(phi.negative_slope)} min(x, 0)"
    return FORMULAS.get(phi.name, f"{phi.name}(x), a function of your own")


def _parameters(phi: Any) -> list[str]:
    return [f"{name} = {float(value)!r}" for name, value in phi.parameters.items()]


def _initialisation_title(model: Transformer) -> str:
    biased = model.mlp is not None and not isinstance(model.mlp, GatedMLP) and (
        np.any(model.mlp.bias_in) or np.any(model.mlp.bias_out)
    )  # fmt: skip
    biases = "" if biased else "; no biases"
    return f"Initialisation (d: width, H heads of width d_k; entries independent, mean 0{biases})"


def _weights(model: Transformer) -> list[str]:
    weights = initialisation(model)
    shapes, variances = (max(len(w[column]) for w in weights) for column in (1, 2))
    return [
        f"{w.name}  {w.shape:<{shapes}}  variance {w.variance:<{variances}}  {w.note}".rstrip() for w in weights
    ]  # fmt: skip


def _by_layer(model: Transformer) -> list[str]:
    """The numbers that the equations call by a symbol because layers differ in them."""
    numbers: dict[str, Any] = dict(attention_gains(model).values())
    if model.gains is not None:
        numbers["τ"] = model.gains.temperature
    if model.residual is not None:
        pairs = (("α₁", "β₁"), model.residual.attention), (("α₂", "β₂"), model.residual.mlp)
        numbers |= {name: weight for names, pair in pairs for name, weight in zip(names, pair, strict=True)}
    if model.mlp is not None:
        symbols = {"gain_in": "σ₁", "gain_gate": "σ_g", "gain_out": "σ₂", "bias_in": "v₁", "bias_out": "v₂"}
        numbers |= {s: getattr(model.mlp, name) for name, s in symbols.items() if hasattr(model.mlp, name)}
    return [f"{symbol}: {listed(values)}" for symbol, values in numbers.items() if not is_one(values)]


def _composition(model: Transformer) -> list[str]:
    """What the blocks do to a correlation, where a shaped activation was made for it."""
    if model.mlp is None or not isinstance(model.mlp.activation, Shaped | ShapedLeakyReLU):
        return []
    try:
        shares = block_maps(model, model.mlp.activation.name.partition("(")[0]).shares
    except ValueError:
        return []
    skips, branches = zip(*shares, strict=True)
    words = weighted_sum_of_map(skips, branches)
    return [f"with A = I a block takes a correlation c to {words}, C the activation's own map"]


def weighted_sum_of_map(skips: Any, branches: Any) -> str:
    """``a c + b C(c)`` with numbers, or their range where blocks differ."""
    terms = []
    for values, thing in ((skips, "c"), (branches, "C(c)")):
        low, high = min(values), max(values)
        if high == 0:
            continue
        number = numeral(round(low, 6)) if high - low < 1e-9 else f"({low:.4g} to {high:.4g})"
        terms.append(thing if number == "1" else f"{number} {thing}")
    return " + ".join(terms)
