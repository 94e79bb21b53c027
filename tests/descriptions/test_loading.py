"""What a description can say, and what is refused in one line that names file, table and entry."""

import numpy as np
import pytest

import kernelprop as kp
from kernelprop import storage
from kernelprop.attention.biases import alibi_bias, softmax_attention, t5_bias
from kernelprop.attention.masking import masked
from kernelprop.attention.random_softmax import random_softmax, rotary_frequencies
from kernelprop.descriptions import load_description
from kernelprop.layers import residual
from kernelprop.network_shaping import shape_activation

ESPA = '[attention]\nkind = "espa"\nlength = 8\ndepth = 4\n'


@pytest.fixture
def load(tmp_path):
    def described(text):
        file = tmp_path / "net.toml"
        file.write_text(text, encoding="utf-8")
        return load_description(file)

    return described


@pytest.mark.parametrize(
    ("text", "model"),
    [
        (ESPA, kp.Transformer(kp.espa(8, 4))),
        (ESPA + "gamma = 0.1", kp.Transformer(kp.espa(8, 4, 0.1))),
        (ESPA + '[mlp]\nactivation = "relu"', kp.Transformer(kp.espa(8, 4), mlp=kp.MLP("relu"))),
        (
            ESPA + '[mlp]\nactivation = {kind = "dks", fn = "gelu", depth = 9, zeta = 1.2}',
            kp.Transformer(kp.espa(8, 4), mlp=kp.MLP(kp.dks("gelu", 9, zeta=1.2))),
        ),
        (
            ESPA + '[mlp]\nactivation = {kind = "tat", fn = "leaky_relu", eta = 0.5}',
            kp.Transformer(kp.espa(8, 4), mlp=kp.MLP(kp.tat("leaky_relu", 4, eta=0.5))),
        ),
        (ESPA + '[residual]\nchoice = "plain"', kp.Transformer(kp.espa(8, 4), residual=residual.plain())),
        (ESPA + '[residual]\nchoice = "none"', kp.Transformer(kp.espa(8, 4))),
        (
            ESPA + '[residual]\nchoice = "normalised"\nbeta = 0.6',
            kp.Transformer(kp.espa(8, 4), residual=residual.normalised(0.6)),
        ),
        (
            ESPA + '[residual]\nchoice = "depth_scaled"\nattention = 2',
            kp.Transformer(kp.espa(8, 4), residual=residual.depth_scaled(4, 2.0)),
        ),
        (
            ESPA + "[residual]\nattention = [1, [0.1, 0.2, 0.3, 0.4]]",
            kp.Transformer(kp.espa(8, 4), residual=kp.Residual((1, [0.1, 0.2, 0.3, 0.4]))),
        ),
        ('norm = "post"\n' + ESPA, kp.Transformer(kp.espa(8, 4), norm="post")),
        (
            ESPA + '[positions]\nkind = "sinusoidal"\nwidth = 4',
            kp.Transformer(kp.espa(8, 4), positions=kp.kernels.positional_sinusoidal(8, 4)),
        ),
        (
            '[attention]\nkind = "dense"\nmatrix = [[1, 0], [0.5, 0.5]]\ndepth = 3\nmix = {alpha = 0.5, beta = 0.5}',
            kp.Transformer(kp.mix([[1, 0], [0.5, 0.5]], 0.5, 0.5), 3),
        ),
        (
            '[attention]\nkind = "uniform"\nlength = 3\nmask = [true, true, false]\nmix = {alpha = 0.5, beta = 0.5}',
            kp.Transformer(kp.mix(masked(kp.uniform(3), np.array([True, True, False])), 0.5, 0.5)),
        ),
        (
            '[attention]\nkind = "random_softmax"\nlength = 4\ncausal = true\ntau = 2\n'
            'bias = {kind = "alibi", slopes = 0.5}\nrotary = {head_width = 4}',
            kp.Transformer(
                random_softmax(
                    4,
                    causal=True,
                    tau=2.0,
                    bias=alibi_bias(4, slopes=0.5),
                    rotary=rotary_frequencies(4),
                )
            ),
        ),
        (
            '[attention]\nkind = "softmax"\nlength = 3\nbias = {kind = "t5", table = [0.0, 1.0, 2.0, 3.0]}',
            kp.Transformer(softmax_attention(t5_bias(3, [0.0, 1.0, 2.0, 3.0]))),
        ),
    ],
)
def test_each_part_is_what_the_library_makes_of_the_same_numbers(load, text, model):
    assert storage.equal(load(text).model, model)


def test_an_activation_without_a_depth_is_shaped_for_the_network_at_hand(load):
    text = ESPA + '[residual]\nattention = [1, 0.5]\nmlp = [1, 0.7]\n[norm]\nplace = "post"\n[mlp]\nactivation = '
    model = load(text + '{kind = "dks", fn = "gelu", zeta = 1.3}').model
    plain = load(text + '"gelu"').model
    assert storage.equal(model, shape_activation(plain, "dks", zeta=1.3))


@pytest.mark.parametrize(
    ("text", "kernel"),
    [
        ("", np.eye(8)),
        ('[input]\nkind = "equicorrelated"\ncorrelation = 0.25', kp.kernels.equicorrelated(8, 0.25)),
        ('[input]\nkind = "exponential"\ndecay = 0.5', kp.kernels.exponential(8, 0.5)),
        (
            '[input]\nkind = "tokens"\ntokens = ["a", "b", "a", "c", "d", "e", "f", "g"]',
            kp.kernels.from_tokens(list("abacdefg")),
        ),
    ],
)
def test_input_kernels(load, text, kernel):
    np.testing.assert_array_equal(load(ESPA + text).kernel0, kernel)


def test_the_length_may_come_from_the_input(load, tmp_path):
    np.save(tmp_path / "X.npy", np.arange(12.0).reshape(3, 4))
    described = load('[attention]\nkind = "uniform"\n[input]\nkind = "embedded"\nfile = "X.npy"')
    assert described.model.length == 3
    np.testing.assert_array_equal(described.kernel0, kp.kernels.from_inputs(np.arange(12.0).reshape(3, 4)))


def test_files_are_found_beside_the_description(load, tmp_path, monkeypatch):
    np.savez(tmp_path / "maps.npz", first=np.eye(2), second=np.full((2, 2), 0.5))
    monkeypatch.chdir("/")
    text = '[attention]\nkind = "dense"\nfile = "maps.npz:second"\ndepth = 2'
    np.testing.assert_array_equal(load(text).model.attention.as_matrix(), np.full((2, 2), 0.5))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"net.toml: \[attention\]: is missing"),
        ("[attention\n", r"net.toml: is no TOML: .*line 1"),
        (ESPA + "[atention]\n", "net.toml: atention: is unknown; tables and entries here: attention, design, gains"),
        (ESPA + "[cross_attention]\n", "net.toml: cross_attention: is not supported: describe the decoder's"),
        (ESPA + "dropout = 0.1", r"net.toml: \[attention\] dropout: is not supported: it is not modelled, a network"),
        (ESPA + "gama = 0.1", r"net.toml: \[attention\] gama: is unknown; entries here: causal, copies, depth, gamma,"),
        (
            ESPA + "mask = [false, true, true, true, true, true, true, true]",
            r"net.toml: \[attention\] mask: masked: layer 1, position 0: every key that it attends to is masked",
        ),
        (ESPA + "mask = [1, 0]", r"net.toml: \[attention\] mask: dtype int64 is not bool"),
        (ESPA + "gamma = -1.0", r"net.toml: \[attention\] gamma: is -1; it must be positive"),
        (ESPA + "gamma0 = -1.0", r"net.toml: \[attention\] gamma0: is -1; it must be positive"),
        (ESPA + "gamma = nan", r"net.toml: \[attention\] gamma: a number is wanted, nan was given"),
        (ESPA.replace("espa", "uspa") + "rho = inf", r"\[attention\] rho: a finite number is wanted, inf was given"),
        (ESPA.replace("depth = 4", "depth = 0"), r"net.toml: \[attention\] depth: 0 is too small"),
        (ESPA + "copies = 0", r"net.toml: \[attention\] copies: 0 is too small"),
        (ESPA + "mix = {alpha = inf, beta = 1}", r"\[attention\] mix.alpha: inf; every entry must be finite"),
        (ESPA + 'gamma = "small"', r"net.toml: \[attention\] gamma: a number is wanted, 'small' was given"),
        (ESPA + "causal = 1", r"\[attention\] causal: true or false is wanted, 1 was given"),
        ('[attention]\nkind = "espa"', r"\[attention\] length: is missing: the number of positions"),
        ('[attention]\nkind = "espa"\nlength = true', r"length: a whole number is wanted, true was given"),
        (
            '[attention]\nkind = "expa"\nlength = 3',
            r"\[attention\] kind: 'expa' is unknown; one of espa",
        ),
        ("[attention]\nlength = 3", r"\[attention\] kind: is missing; one of espa"),
        ('[attention]\nkind = "mixture_of_experts"', "mixture_of_experts is not supported: mixtures of experts have"),
        ('[attention]\nkind = "dense"', r"\[attention\]: give file or matrix, one of the two"),
        ('[attention]\nkind = "dense"\nfile = "no.npy"', r"\[attention\] file: .*no.npy: no such file"),
        ('[attention]\nkind = "dense"\nmatrix = [[1, 2], [3]]', "matrix: the rows have different lengths"),
        (ESPA + "mix = {alpha = 1}", r"\[attention\] mix.beta: is missing"),
        (ESPA + "[mlp]\nexpansion = 4", r"\[mlp\] activation: is missing"),
        (ESPA + '[mlp]\nactivation = "rleu"', r"\[mlp\] activation: 'rleu' is unknown; the names are cos"),
        (ESPA + '[mlp]\nactivation = {kind = "dsk"}', r"\[mlp\] activation.kind: 'dsk' is unknown; one of dks, tat"),
        (ESPA + '[mlp]\nactivation = {kind = "dks", fn = "gelu", eta = 1}', r"activation.eta: is unknown; entries"),
        (
            ESPA + '[mlp]\nactivation = {kind = "dks", fn = "gelu", input_scale = 1}',
            r"\[mlp\] activation: the parameters are input_scale, input_shift, output_shift, output_scale",
        ),
        (
            ESPA + '[mlp]\nactivation = {kind = "tat", fn = "leaky_relu", eta = 0.99}',
            r"\[mlp\] activation.eta: 0.99 can't be reached by 4 nonlinear layers",
        ),
        (ESPA + '[mlp]\nactivation = {kind = "dks", fn = "x"}', r"\[mlp\] activation.fn: 'x' is unknown"),
        (ESPA + '[mlp]\nactivation = "relu"\nexpansion = -1', r"\[mlp\] expansion: is -1; it must be positive"),
        (ESPA + '[mlp]\nactivation = "relu"\ngain_in = [1, 2]', r"\[mlp\] gain_in: 2 values for 4 layers"),
        (ESPA + '[mlp]\nactivation = "relu"\nexperts = 8', r"\[mlp\] experts: is not supported: mixtures of experts"),
        (ESPA + '[mlp]\nactivation = "relu"\ngain_gate = 2', r"\[mlp\] gain_gate: is unknown"),
        (ESPA + '[residual]\nchoice = "plane"', r"\[residual\] choice: 'plane' is unknown; one of none, plain"),
        (ESPA + '[residual]\nchoice = "normalised"', r"\[residual\] beta: is missing"),
        (ESPA + "[residual]\nattention = 1", r"\[residual\] attention: a pair \[alpha, beta\] is wanted, 1 was given"),
        (ESPA + "[residual]\nattention = [1, [1, 2]]", r"net.toml: \[residual\] attention: 2 values for 4 layers"),
        (ESPA + '[norm]\nplace = "both"', r"\[norm\]: place 'both' is unknown; use 'pre' or 'post'"),
        (ESPA + '[input]\nkind = "equicorrelated"\ncorrelation = 1.5', r"\[input\] correlation: 1.5 for 8 positions"),
        (ESPA + '[input]\nkind = "exponential"\ndecay = -1', r"\[input\] decay: -1 is negative"),
        (ESPA + '[positions]\nkind = "learned"\nvariance = -1', r"\[positions\] variance: -1 is negative"),
        (ESPA + '[input]\nkind = "equicorrelated"', r"\[input\] correlation: is missing"),
        (ESPA + '[input]\nkind = "given"\nmatrix = [[1, 2], [2, 1]]', r"\[input\] matrix: positions 0 and 1: entry 2"),
        (ESPA + '[input]\nkind = "tokens"\ntokens = [1, 2]', r"\[input\]: 2 positions, but the attention has 8"),
        ("parallel = 1\n" + ESPA, r"net.toml: parallel: true or false is wanted, 1 was given"),
        (ESPA.replace("depth = 4", "depth = 4\ngammas = [1, 0.5]"), "depth=4 conflicts with the 1 layers of"),
    ],
)
def test_what_is_wrong_is_told_in_one_line(load, text, message):
    with pytest.raises(ValueError, match=message) as caught:
        load(text)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("attention", "remark"),
    [
        (
            "matrix = [[3.0, -1.0], [0.5, 0.5]]",
            "1 of 2 rows does not sum to 1, the largest deviation is 1 (posi",
        ),
        (
            "matrix = [[[[2, 2], [1, 5]]]]",
            "2 of 2 rows do not sum to 1, the largest deviation is 5 (layer 1, head 0",
        ),
        ("matrix = [[1.5, -0.5], [0, 1]]\nmix = {alpha = 1, beta = 2}", "given attention: 1 entry is negative; raw"),
        ("matrix = [[1, 0], [0.4996, 0.5]]\nmix = {alpha = 1, beta = 2}", None),
    ],
)
def test_given_rows_that_are_no_shares_are_remarked_on(load, attention, remark):
    notes = load(f'[attention]\nkind = "dense"\n{attention}').notes
    assert notes == () if remark is None else remark in notes[0]
    assert all("raw logits need a softmax first" in note and "\n" not in note for note in notes)


@pytest.mark.parametrize(
    "attention",
    ['"espa"\ncausal = false', '"espa"', '"softmax"\nrescale = [2, 2, 2]', '"uniform"\nmix = {alpha = 1, beta = 1}'],
)
def test_rows_of_constructions_sum_to_what_these_say(load, attention):
    described = load(f"[attention]\nlength = 3\ndepth = 2\nkind = {attention}")
    assert described.notes == ()
    assert np.abs(described.model.attention.as_matrix().sum(-1) - 1).max() > 1e-3


def test_files_that_are_no_text(tmp_path):
    with pytest.raises(ValueError, match=r"missing.toml: no such file"):
        load_description(tmp_path / "missing.toml")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(ValueError, match=r"binary.toml: is no TOML: not a text in UTF-8"):
        load_description(tmp_path / "binary.toml")
