"""The options that describe a network: each is what the library calls by that name, or is refused."""

import tomllib

import numpy as np
import pytest

import kernelprop as kp
from kernelprop import storage
from kernelprop.attention.masking import masked
from kernelprop.cli.network import NetworkOptions, network
from kernelprop.cli.network_options import NetworkOptions as Declared
from kernelprop.layers import residual

T, L = 6, 4


def of(**options):
    return network(NetworkOptions(length=T, depth=L, **options), None, T)


def attention(operator, **parts):
    return kp.Transformer(operator, operator.depth or L, **parts)


PADDING = np.arange(T) < T - 2
CASES = {
    "window": (
        {"attention": "sliding_window", "window": 3, "causal": False},
        lambda: attention(kp.sliding_window(T, 3, causal=False)),
    ),
    "random softmax": (
        {"attention": "softmax", "temperature": 2.0, "heads": 3, "seed": 7, "rotary": 8, "alibi": 3, "padding": 2},
        lambda: attention(
            kp.random_softmax(
                T, 3, 2.0, bias=kp.alibi_bias(T, 3), mask=PADDING, seed=7, rotary=kp.rotary_frequencies(8)
            )
        ),
    ),
    "padding, identity's share": (
        {"attention": "uniform", "padding": 2, "alpha": 0.9, "beta": 0.1},
        lambda: attention(kp.mix(masked(kp.uniform(T), PADDING), 0.9, 0.1)),
    ),
    "gated MLP, RMSNorm, gains, positions": (
        {
            **{"attention": "espa", "mlp": "silu", "gated": True, "expansion": 3.0, "gain_gate": 0.9, "gain_in": 1.1},
            **{"norm": "pre", "norm_kind": "rms", "epsilon": 1e-5, "final_norm": True, "parallel": True},
            **{"value_gain": 1.2, "query_gain": 0.5, "residual": "plain", "positions": "sinusoidal"},
        },
        lambda: attention(
            kp.espa(T, L),
            mlp=kp.GatedMLP("silu", 3, 1.1, 0.9),
            residual=residual.plain(),
            norm=kp.Norm("pre", "rms", 1e-5, final=True),
            gains=kp.Gains(value=1.2, query=0.5),
            positions=kp.kernels.positional_sinusoidal(T, 256),
            parallel=True,
        ),
    ),
    "biases, depth scaling, learned positions": (
        {
            **{"attention": "identity", "mlp": "relu", "gain_out": 1.4, "bias_in": 0.1, "bias_out": 0.2},
            **{"residual": "depth_scaled", "branch": 0.5, "mlp_branch": 2.0},
            **{"positions": "learned", "position_variance": 0.3},
        },
        lambda: attention(
            kp.identity(T),
            mlp=kp.MLP("relu", gain_out=1.4, bias_in=0.1, bias_out=0.2),
            residual=residual.depth_scaled(L, 0.5, 2.0),
            positions=kp.kernels.positional_learned(T, 0.3),
        ),
    ),
    "TAT": (
        {
            "attention": "uspa",
            "mlp": "leaky_relu",
            "shaping": "tat",
            "eta": 0.2,
            "residual": "normalised",
            "branch": 0.6,
        },
        lambda: kp.shape_activation(
            attention(kp.uspa(T, L), mlp=kp.MLP("leaky_relu"), residual=residual.normalised(0.6)), "tat", eta=0.2
        ),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_options_describe_what_the_library_calls_so(name):
    options, expected = CASES[name]
    assert storage.equal(of(**options), expected())


def test_evolve_and_describe_take_them(command):
    options = "--attention identity --length 4 --depth 3 --mlp linear --norm pre --residual plain --final-norm"
    rows = command(f"evolve {options} --no-plots --json").table["rows"]
    assert [row["depth"] for row in rows] == [0, 1, 2, 3]
    described = tomllib.loads(command(f"describe {options} --toml").out)
    assert described["norm"] == {"place": "pre", "kind": "layer", "epsilon": 0.0, "final": True}
    assert described["residual"] == {"attention": [1.0, 1.0], "mlp": [1.0, 1.0]}
    assert NetworkOptions is Declared


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("espa --heads 2", "--heads: has no meaning for --attention espa; it belongs to softmax"),
        ("sliding_window", "--window: its width is wanted"),
        ("uniform --padding 4", "--padding: 4 of 4 positions; at least one position is none"),
        ("softmax --heads 2 --alibi 3", "random_softmax: bias: 3 biases for heads=2"),
        ("softmax --rotary 3", "rotary: head_width: 3 is odd"),
        ("softmax --alpha 1", "--alpha, --beta: have no meaning for --attention softmax"),
        ("espa --shaping dks", "--shaping: there is no MLP; name its activation with --mlp"),
        ("espa --mlp gelu --zeta 2", "--zeta: belongs to --shaping"),
        ("espa --mlp gelu --shaping sks", "shape_activation: method 'sks' is unknown"),
        ("espa --mlp leaky_relu --shaping tat", "eta: 0.9 can't be reached by 1 nonlinear layers"),
        ("espa --mlp gelu --gain-gate 2", "--gain-gate: belongs to --gated"),
        ("espa --mlp gelu --gated --bias-in 2", "--bias-in: a gated MLP has no biases here"),
        ("espa --epsilon 1", "--epsilon: belongs to --norm"),
        ("espa --norm pre --norm-kind batch", "norm: kind 'batch' is unknown; use 'layer' or 'rms'"),
        ("espa --residual highway", "--residual: 'highway' is unknown; one of plain, normalised, depth_scaled"),
        ("espa --residual normalised", "--branch: the branches' weight is wanted for --residual normalised"),
        ("espa --residual normalised --branch 2", "residual: beta is 2"),
        ("espa --residual plain --skip 1", "--skip: has no meaning for --residual plain"),
        ("espa --positions rotary", "--positions: 'rotary' is unknown; one of learned, sinusoidal"),
        ("espa --positions learned --position-width 4", "--position-width: belongs to --positions sinusoidal"),
    ],
)
def test_options_that_do_not_go_together_are_refused(command, options, message):
    ran = command(f"describe --attention {options} --length 4")
    assert ran.code == 2
    assert ran.err.startswith(f"error: {message}")
    assert ran.err.count("\n") == 1
