"""Designs keep their kernel, and their files hold all that it takes to build them."""

import numpy as np
import pytest
from safetensors.numpy import load_file

import kernelprop as kp
from kernelprop import memory, storage
from kernelprop.descriptions import load_description
from kernelprop.designs import design

T, L = 16, 36


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("attention", ["espa", "uspa"])
def test_attention_alone_ends_at_the_prescribed_kernel(attention, causal):
    made = design(T, L, attention=attention, causal=causal, activation=None, gamma=0.02, rho=0.7)
    assert made.distance(made.attention_alone) < 1e-12
    assert made.distance(made.network) == made.distance(made.attention_alone)
    prescribed = kp.kernels.exponential(T, 0.02) if attention == "espa" else kp.kernels.equicorrelated(T, 0.7)
    np.testing.assert_array_equal(made.prescribed[-1], prescribed)


@pytest.fixture(scope="module")
def designs():
    """36 blocks with each of the activations: what is compiled for one, all tests share."""
    return {
        "DKS GELU": design(T, L),
        "TAT leaky ReLU": design(T, L, activation="leaky_relu"),
        "GELU": design(T, L, shaping=None),
        "sigmoid": design(T, L, activation="sigmoid", shaping=None),
    }


@pytest.fixture
def shaped(designs):
    return designs["DKS GELU"]


@pytest.mark.slow  # four networks of 36 layers
def test_all_activations_but_the_plain_sigmoid_keep_positions_apart(designs):
    # He et al. 2023 train E-SPA with all of these but the plain sigmoid.
    for name, made in designs.items():
        keeps = name != "sigmoid"
        assert (made.network.mean_correlation[L] < 0.999) == keeps, name
        assert (made.network.rank_residual[L] > 0.05) == keeps, name
    assert designs["sigmoid"].network.mean_correlation[L] > 1 - 1e-5


def test_a_shaped_network_stays_near_it(shaped):
    assert shaped.model.mlp.activation.parameters == kp.dks("gelu", L).parameters
    diagonal = np.diagonal(shaped.network.kernel(L))
    assert shaped.distance(shaped.network) < 0.07
    assert diagonal.min() > 0.9
    assert shaped.network.mean_correlation[L] < 0.99


def test_an_activation_that_is_not_shaped_does_not(designs):
    plain = designs["GELU"]
    assert np.diagonal(plain.network.kernel(L)).max() > 2  # the diagonal blows up where correlations gain
    assert float(plain.model.mlp.gain_out[0]) ** -2 == pytest.approx(0.4252214825702987, abs=1e-14)


def test_the_schedule_is_fitted_to_the_input():
    kernel = 2.0 * kp.kernels.exponential(T, 0.5)
    made = design(T, L, kernel0=kernel, activation=None)
    assert made.fit is not None
    assert made.fit.value == pytest.approx(0.5, abs=1e-12)
    assert made.schedule[0] == made.fit.value
    assert made.input_scale == 0.5
    assert made.distance(made.attention_alone) < 1e-12


def test_rectifiers_are_shaped_by_tat(designs):
    assert designs["TAT leaky ReLU"].model.mlp.activation.parameters == kp.tat("leaky_relu", L).parameters


def test_the_files_rebuild_the_network(shaped, tmp_path):
    tensors_file, words_file = shaped.save(tmp_path / "mine")
    described = load_description(words_file)
    assert described.name == "mine"
    assert storage.equal(described.model, shaped.model)
    np.testing.assert_array_equal(described.kernel0, shaped.kernel0)
    tensors = load_file(tensors_file)
    logits = np.where(tensors["mask"], tensors["bias"].astype(float), -np.inf)
    softmax = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    matrices = tensors["rescale"][..., None] * softmax
    np.testing.assert_allclose(matrices, shaped.model.attention.as_matrix(), rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(tensors["kernel_last"], shaped.network.kernel(L), rtol=1e-6)
    assert {name: (array.dtype.name, array.shape) for name, array in tensors.items()} == {
        "rescale": ("float32", (L, T)),
        "bias": ("float32", (L, T, T)),
        "mask": ("bool", (T, T)),
        "schedule": ("float32", (L + 1,)),
        "kernel_first": ("float32", (T, T)),
        "kernel_last": ("float32", (T, T)),
    }


def test_given_arrays_go_with_the_tensors(tmp_path):
    made = design(T, 3, causal=False, activation=None, kernel0=kp.kernels.exponential(T, 0.7))
    files = made.save(tmp_path / "both", dtype="float64")
    described = load_description(files[1])
    assert storage.equal(described.model, made.model)  # a non-causal E-SPA is its matrices
    np.testing.assert_array_equal(described.kernel0, made.kernel0)


def test_the_words_have_the_initialisation(shaped, tmp_path):
    text = shaped.save(tmp_path / "mine")[1].read_text(encoding="utf-8")
    for part in ("W_Q (d, H d_k): variance 0", "W_2 (4 d, d): variance 1/(4 d)", 'tensors = "mine.safetensors"'):
        assert part in text


def test_a_design_that_does_not_fit_is_refused_before_anything_is_written(shaped, tmp_path, monkeypatch):
    monkeypatch.setattr(memory, "available_bytes", lambda: 1000)
    with pytest.raises(ValueError, match=r"the biases of 36 layers of 16 positions need .* are available"):
        shaped.save(tmp_path / "large")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"attention": "dense"}, "attention 'dense' is unknown; use 'espa' or 'uspa'"),
        ({"kernel0": np.eye(3)}, r"kernel0: shape \(3, 3\) does not fit length=16"),
        ({"activation": "leaky_relu", "eta": 0.99}, "eta: 0.99 can't be reached by 36 nonlinear layers"),
        ({"activation": None, "zeta": 1.2}, "zeta was given, but there is no activation to shape"),
        ({"shaping": None, "zeta": 1.2}, "zeta was given, but shaping is None"),
        ({"shaping": "sks"}, "method 'sks' is unknown"),
        ({"residual": kp.Residual((1, 1), (1, 1))}, "a smooth activation is shaped for one"),
    ],
)
def test_what_cannot_be_designed_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        design(T, L, **options)
