"""Descriptions load back to an equal network, every kind of part among them."""

import numpy as np
import pytest

import kernelprop as kp
from kernelprop import storage
from kernelprop.attention.random_softmax import random_softmax, shaped_attention
from kernelprop.attention.sliding_window import sliding_window
from kernelprop.descriptions import description_toml, load_description, save_description

T = 8
RANDOM = np.random.default_rng(5)
UNEVEN = np.linspace(0.5, 1.0, 5)


def network(attention, depth=5, **parts):
    return kp.Transformer(attention, attention.depth or depth, **parts)


STRUCTURED = {
    "espa": network(kp.espa(T, 12)),
    "espa, not nonnegative": network(kp.espa(T, gammas=[3, 1, 2.0, 0.1], require_nonnegative=False)),
    "espa, its own schedule": network(kp.espa(T, gammas=[np.inf, 1.0, 0.7, 0.1])),
    "uspa": network(kp.uspa(T, 5, rho=0.6, rho0=0.1)),
    "uspa, not causal": network(kp.uspa(T, 12, causal=False)),
    "uniform": network(kp.uniform(T)),
    "causal mean": network(kp.uniform(T, causal=True)),
    "identity": network(kp.identity(T)),
    "window": network(sliding_window(T, 3)),
    "window, both sides": network(sliding_window(T, 3, causal=False)),
    "mixture": network(kp.mix(kp.uniform(T, causal=True), 0.3, 0.7)),
    "mixture by layer": network(kp.mix(kp.uniform(T), UNEVEN, 0.5)),
    "mixture of a stack": network(kp.mix(kp.uspa(T, 5), 0.3, UNEVEN)),
    "mixture of a mixture": network(kp.mix(kp.mix(kp.identity(T), 0.3, 0.2), 0.1, 0.9)),
    "copies": network(kp.block_diagonal(kp.mix(kp.espa(T, 3), 0.1, 0.2), 2)),
    "random": network(random_softmax(T, causal=True, tau=2.0, draws=8, seed=3)),
    "shaped attention": network(shaped_attention(T, heads=3, rescale=np.linspace(1, 2, T), rotary=[1.0, 0.5])),
    "relu": network(kp.identity(T), mlp=kp.MLP("relu", 2, np.sqrt(2), UNEVEN, bias_in=0.1)),
    "gated": network(kp.identity(T), mlp=kp.GatedMLP("silu", gain_gate=0.5)),
    "dks": network(kp.identity(T), mlp=kp.MLP(kp.dks("gelu", 12))),
    "tat": network(kp.identity(T), mlp=kp.MLP(kp.tat("leaky_relu", 20))),
    "leaky": network(kp.identity(T), mlp=kp.MLP(kp.LeakyReLU(0.3))),
    "everything around": network(
        kp.uniform(T),
        residual=kp.Residual((1, UNEVEN), (0.3, 0.4)),
        norm=kp.Norm("pre", "rms", 1e-5, final=True),
        gains=kp.Gains(2.0, temperature=UNEVEN),
        positions=kp.kernels.positional_learned(T, 0.2),
        parallel=True,
        mlp=kp.MLP("gelu_tanh"),
    ),
}
GIVEN = {
    "matrix": network(kp.dense(RANDOM.random((T, T)))),
    "matrices": network(kp.dense(RANDOM.random((5, T, T)))),
    "heads": network(kp.dense(RANDOM.random((5, 2, T, T)))),
    "espa, not causal": network(kp.espa(T, 5, causal=False)),
    "bias and padding": network(random_softmax(T, heads=2, bias=RANDOM.random((2, T, T)), mask=[True] * 7 + [False])),
    "positions": network(kp.uniform(T), positions=kp.kernels.positional_sinusoidal(T, 4)),
}


@pytest.mark.parametrize("model", STRUCTURED.values(), ids=STRUCTURED.keys())
def test_a_structured_network_is_text_alone(model, tmp_path):
    (tmp_path / "network.toml").write_text(description_toml(model), encoding="utf-8")
    assert storage.equal(load_description(tmp_path / "network.toml").model, model)


@pytest.mark.parametrize("model", GIVEN.values(), ids=GIVEN.keys())
def test_arrays_go_to_a_file_beside_it(model, tmp_path):
    arrays, text = save_description(tmp_path / "network.toml", model)
    assert (arrays.name, text.name) == ("network.npz", "network.toml")
    assert storage.equal(load_description(text).model, model)
    with pytest.raises(ValueError, match=r"arrays need a file beside the text; use kp.save_description"):
        description_toml(model)


@pytest.mark.parametrize(
    "kernel",
    [
        kp.kernels.identity(T),
        kp.kernels.equicorrelated(T, 0.3),
        kp.kernels.exponential(T, 0.1),
        kp.kernels.from_tokens([0, 1, 0, 2, 3, 4, 5, 0]),
        2.0 * np.eye(T),
    ],
    ids=["identity", "equicorrelated", "exponential", "tokens", "scaled"],
)
def test_the_input_kernel_comes_back(kernel, tmp_path):
    save_description(tmp_path / "network.toml", STRUCTURED["espa"], kernel, name="mine")
    described = load_description(tmp_path / "network.toml")
    assert described.name == "mine"
    np.testing.assert_array_equal(described.kernel0, kernel)


def test_structures_without_numbers_of_their_own_are_written_as_matrices(tmp_path):
    model = network(kp.mix(kp.block_diagonal(kp.uniform(4), 2), 0.5, 0.5), depth=2)
    files = save_description(tmp_path / "network.toml", model)
    again = load_description(files[-1]).model
    np.testing.assert_array_equal(again.attention.as_matrix(), model.attention.as_matrix())


def test_a_function_of_ones_own_is_refused_by_name():
    def bump(x):
        return x * x

    with pytest.raises(ValueError, match="activation: bump is a function of your own"):
        description_toml(network(kp.identity(T), mlp=kp.MLP(bump)))


def test_the_text_is_one_to_read():
    text = description_toml(network(kp.espa(T, 2), mlp=kp.MLP("relu"), parallel=True), name="two")
    assert text.splitlines()[:9] == [
        'name = "two"',
        "parallel = true",
        "",
        "[attention]",
        'kind = "espa"',
        f"length = {T}",
        "depth = 2",
        "gamma = 0.005",
        "gamma0 = inf",
    ]
