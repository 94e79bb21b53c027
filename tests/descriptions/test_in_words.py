"""A network in words: every initialisation variance, the equations, and the numbers behind their symbols."""

import numpy as np
import pytest

import kernelprop as kp
from kernelprop.attention.random_softmax import random_softmax, shaped_attention
from kernelprop.descriptions.in_words import WIDTH, describe
from kernelprop.network_shaping import shape_activation

SKIPS = kp.Residual(attention=(1.0, 0.5), mlp=(0.8, 0.6))
ESPA = kp.espa(8, 4)


def words(*arguments, **parts):
    return describe(kp.Transformer(*arguments, **parts))


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (
            words(ESPA, mlp=kp.MLP("gelu"), residual=SKIPS, norm="pre"),
            [
                "4 blocks over 8 positions.",
                "  Z  = X + 0.5 Attn(N(X))",
                "  X' = 0.8 Z + 0.6 φ(N(Z) W_1) W_2",
                "  N: LayerNorm, epsilon 0",
                "  γ_0 to γ_4: inf, 0.189777, 0.0525417, 0.0160057, 0.005",
                "  Σ_Z = Σ + 0.25 A N(Σ) Aᵀ",
                "  Σ'  = 0.64 Σ_Z + 0.36 K(N(Σ_Z))",
                "  N(Σ)_ij = Σ_ij / sqrt(Σ_ii Σ_jj)",
            ],
        ),
        (
            words(ESPA, mlp=kp.MLP("relu"), residual=SKIPS, norm=kp.Norm("post", "rms", 1e-5, True)),
            [
                "  Z  = N(X + 0.5 Attn(X))",
                "  X' = N(0.8 Z + 0.6 φ(Z W_1) W_2)",
                "  N: RMSNorm, epsilon 1e-05; once more behind the last block",
                "  Σ_Z = N(Σ + 0.25 A Σ Aᵀ)",
                "  N(Σ)_ij = Σ_ij / sqrt((Σ_ii + 1e-05) (Σ_jj + 1e-05))",
            ],
        ),
        (
            words(ESPA, mlp=kp.MLP("relu"), residual=SKIPS, norm="pre", parallel=True),
            [
                "4 blocks over 8 positions, attention and MLP in parallel.",
                "  X' = X + 0.5 Attn(N(X)) + 0.6 φ(N(X) W_1) W_2",
                "  Σ'  = Σ + 0.25 A N(Σ) Aᵀ + 0.36 K(N(Σ))",
            ],
        ),
        (
            words(ESPA, mlp=kp.GatedMLP("silu", gain_gate=2.0)),
            [
                "  X' = (φ(Z W_1) ∘ Z W_g) W_2",
                "  W_g  (d, 4 d)    variance 4/d",
                "  Σ'  = K(Σ_Z) ∘ 4 Σ_Z",
            ],
        ),
        (
            words(kp.uniform(8), 4, gains=kp.Gains(value=1.5, output=[1.0, 2.0, 2.0, 0.5], temperature=8.5)),
            [
                "  temperature: the logits times 8.5",
                "  W_V  (d, H d_k)  variance 2.25/d",
                "  W_O  (H d_k, d)  variance σ_O²/(H d_k)",
                "  σ_O: 1, 2 (2 times), 0.5",
                "  Σ'  = 2.25 σ_O² A Σ Aᵀ",
            ],
        ),
        (
            words(kp.identity(8), mlp=kp.MLP("gelu", 2, np.sqrt(2), 0.5, bias_in=0.1, bias_out=0.2)),
            [
                "  X' = (φ(Z W_1 + b_1) W_2 + b_2)",
                "  W_1  (d, 2 d)    variance 2/d",
                "  W_2  (2 d, d)    variance 0.25/(2 d)",
                "  b_1  (2 d,)      variance 0.1",
                "  b_2  (d,)        variance 0.2",
                "  K(Σ)_ij = E[φ(u) φ(v)],  (u, v) ~ N(0, 2 [[Σ_ii, Σ_ij], [Σ_ij, Σ_jj]] + 0.1)",
            ],
        ),
        (
            words(random_softmax(8, causal=True, tau=2.0, query_gain=0.5)),
            [
                "  A = P, drawn anew in every layer and head",
                "  W_Q  (d, H d_k)  variance 0.25/d",
                "  Σ'  = E[A Σ Aᵀ]",
            ],
        ),
        (
            words(shaped_attention(8, heads=3)),
            ["  A = I + P - P_0, drawn anew in every layer and head", "  Σ'  = mean_h A_h Σ A_hᵀ"],
        ),
        (
            words(kp.mix(kp.uniform(8, causal=True), 1.0, 0.0), mlp=kp.MLP("relu")),
            [
                "  A = I, the identity as a skip of the values (Value-SkipInit)",
                "  A°: causal mean, A°_ij = 1/(i+1) for j <= i",
                "  as softmax: A° = D softmax(B + mask), D = A° 1, B = log(A°_ij/D_i), queries 0",
            ],
        ),
        (words(kp.dense(np.eye(3) - 1)), ["  A has negative entries: no softmax makes it"]),
        (words(kp.block_diagonal(kp.uniform(4), 2)), ["  A: uniform, every entry 1/4"]),
    ],
)
def test_the_equations_and_variances_are_the_networks(text, lines):
    for line in lines:
        assert line in text.splitlines()


def test_queries_of_given_attention_start_at_zero():
    line = next(line for line in words(ESPA).splitlines() if line.startswith("  W_Q"))
    assert line == "  W_Q  (d, H d_k)  variance 0          so that the logits are 0, the attention A"


def test_a_shaped_activation_has_its_numbers_and_its_block_map():
    model = shape_activation(kp.Transformer(ESPA, mlp=kp.MLP("leaky_relu"), residual=SKIPS, norm="pre"), "tat", eta=0.1)
    lines = describe(model).splitlines()
    for name, value in model.mlp.activation.parameters.items():
        assert f"  {name} = {value!r}" in lines
    assert any("a block takes a correlation c to (0.6897 to " in line for line in lines)


def test_no_line_is_wider_than_the_page():
    deep = kp.Transformer(kp.espa(8, 100), residual=kp.Residual((1.0, np.linspace(0, 1, 100))))
    assert max(map(len, describe(deep).splitlines())) <= WIDTH
