"""The options that describe a network, shared by the commands that take one."""

from dataclasses import dataclass
from typing import Annotated

from kernelprop.cli.options import option, switch

ATTENTION, BLOCK, MLP, EMBEDDING = "Attention", "Block", "MLP", "Positions"

Number = float | None
Whole = int | None
Text = str | None
Switch = bool | None


@dataclass(frozen=True, kw_only=True)
class NetworkOptions:
    """What was asked for, None where nothing was."""

    attention: Annotated[
        Text,
        option(
            ATTENTION,
            "Matrices (T,T), (L,T,T) or (L,H,T,T); or espa, uspa, uniform, identity, sliding_window, softmax.",
            "FILE|NAME",
        ),
    ] = None
    length: Annotated[Whole, option(ATTENTION, "Positions of a named attention.", "T")] = None
    depth: Annotated[Whole, option(ATTENTION, "Layers; the file's, or 1.", "L")] = None
    gamma: Annotated[Number, option(ATTENTION, "espa: decay rate of the last layer (0.005).", "NUMBER")] = None
    gamma0: Annotated[Number, option(ATTENTION, "espa: decay rate of the input (inf).", "NUMBER")] = None
    rho: Annotated[Number, option(ATTENTION, "uspa: correlation of the last layer (0.8).", "NUMBER")] = None
    rho0: Annotated[Number, option(ATTENTION, "uspa: correlation of the input (0).", "NUMBER")] = None
    window: Annotated[Whole, option(ATTENTION, "sliding_window: its width, the position itself included.", "W")] = None
    causal: Annotated[
        Switch, switch(ATTENTION, "Attend backward only (espa, uspa: causal; others: not).", "--causal/--no-causal")
    ] = None
    padding: Annotated[
        Whole, option(ATTENTION, "The last N positions are padding: nobody attends to them (0).", "N")
    ] = None
    temperature: Annotated[Number, option(ATTENTION, "softmax: factor of its random logits (1).", "NUMBER")] = None
    heads: Annotated[Whole, option(ATTENTION, "softmax: heads; infinitely many if not given.", "H")] = None
    draws: Annotated[Whole, option(ATTENTION, "softmax: matrices drawn a layer for the mean over heads (32).", "N")] = (
        None
    )
    seed: Annotated[Whole, option(ATTENTION, "softmax: seed of the draws (0).", "SEED")] = None
    alibi: Annotated[Whole, option(ATTENTION, "softmax: ALiBi biases of this many slopes, a head each.", "H")] = None
    rotary: Annotated[Whole, option(ATTENTION, "softmax: rotary positions of this head width.", "WIDTH")] = None
    alpha: Annotated[Number, option(ATTENTION, "Share of the identity in alpha I + beta A (0).", "NUMBER")] = None
    beta: Annotated[Number, option(ATTENTION, "Share of the attention in it (1).", "NUMBER")] = None
    residual: Annotated[
        Text,
        option(
            BLOCK, "plain (1, 1); normalised (a^2 + b^2 = 1, b = --branch); depth_scaled (--branch/sqrt L).", "NAME"
        ),
    ] = None
    skip: Annotated[Number, option(BLOCK, "Residual: weight of the skip (1).", "NUMBER")] = None
    branch: Annotated[Number, option(BLOCK, "Residual: weight of the attention branch (1).", "NUMBER")] = None
    mlp_skip: Annotated[Number, option(BLOCK, "Residual of the MLP: weight of the skip (--skip).", "NUMBER")] = None
    mlp_branch: Annotated[Number, option(BLOCK, "Residual of the MLP: weight of its branch (--branch).", "NUMBER")] = (
        None
    )
    norm: Annotated[Text, option(BLOCK, "Normalise before branches, or after sums.", "pre|post")] = None
    norm_kind: Annotated[Text, option(BLOCK, "LayerNorm (default) or RMSNorm.", "layer|rms")] = None
    epsilon: Annotated[Number, option(BLOCK, "Norm: added to the variance (0).", "NUMBER")] = None
    final_norm: Annotated[Switch, switch(BLOCK, "Normalise once more after the last block.", "--final-norm")] = None
    parallel: Annotated[Switch, switch(BLOCK, "Attention and MLP read the same input.", "--parallel")] = None
    query_gain: Annotated[Number, option(BLOCK, "Gain of W_Q: its entries have variance gain^2/d (1).", "NUMBER")] = (
        None
    )
    key_gain: Annotated[Number, option(BLOCK, "Gain of W_K (1).", "NUMBER")] = None
    value_gain: Annotated[Number, option(BLOCK, "Gain of W_V (1).", "NUMBER")] = None
    output_gain: Annotated[Number, option(BLOCK, "Gain of W_O (1).", "NUMBER")] = None
    mlp: Annotated[Text, option(MLP, "An MLP of this activation: relu, gelu, ...", "NAME")] = None
    shaping: Annotated[Text, option(MLP, "Shape the activation for this network.", "dks|tat")] = None
    zeta: Annotated[Number, option(MLP, "dks: slope of the whole network (1.5).", "NUMBER")] = None
    eta: Annotated[Number, option(MLP, "tat of leaky_relu: end of correlation 0 (0.9).", "NUMBER")] = None
    tau: Annotated[Number, option(MLP, "tat of others: the network's curvature (0.3).", "NUMBER")] = None
    gated: Annotated[Switch, switch(MLP, "A gated MLP: with silu, SwiGLU.", "--gated")] = None
    expansion: Annotated[Number, option(MLP, "Hidden width over width (4).", "NUMBER")] = None
    gain_in: Annotated[Number, option(MLP, "Gain of W_1 (1).", "NUMBER")] = None
    gain_gate: Annotated[Number, option(MLP, "Gain of the gate's weights (1).", "NUMBER")] = None
    gain_out: Annotated[Number, option(MLP, "Gain of W_2 (1).", "NUMBER")] = None
    bias_in: Annotated[Number, option(MLP, "Variance of the bias before the activation (0).", "NUMBER")] = None
    bias_out: Annotated[Number, option(MLP, "Variance of the bias behind W_2 (0).", "NUMBER")] = None
    positions: Annotated[Text, option(EMBEDDING, "Added to the input kernel.", "learned|sinusoidal")] = None
    position_variance: Annotated[Number, option(EMBEDDING, "learned: their variance (1).", "NUMBER")] = None
    position_width: Annotated[Whole, option(EMBEDDING, "sinusoidal: their width, even (256).", "d")] = None
