"""Shaped activations of whole networks: the target is read off the network itself, attention the identity."""

import time

import numpy as np
import pytest

import kernelprop as kp
from kernelprop.network_shaping import block_maps, shape_activation

BLOCKS = 6
SKIPS = kp.Residual((1, 0.5), (1, 0.7))
CHANGING = kp.Residual((1, 0.5), (1, np.linspace(0.2, 1.4, BLOCKS)))
ARCHITECTURES = {
    "no residual": {},
    "normalised residual": {"residual": kp.Residual(attention=(0.6, 0.8), mlp=(0.8, 0.6))},
    "Pre-norm": {"residual": kp.Residual((1, 1), (1, 1)), "norm": "pre"},
    "Pre-norm, changing": {"residual": CHANGING, "norm": "pre", "gains": kp.Gains(value=1.3, output=0.8)},
    "Post-norm": {"residual": SKIPS, "norm": "post"},
    "parallel": {"residual": SKIPS, "norm": "pre", "parallel": True},
    "parallel, Post-norm": {"residual": SKIPS, "norm": "post", "parallel": True},
    "final norm": {"residual": SKIPS, "norm": kp.Norm("pre", "rms", final=True)},
}


def some_architectures(*quick):
    """All of them, those not named in the slow run only: each compiles a quadrature for some seconds."""
    return pytest.mark.parametrize(
        "parts",
        [
            pytest.param(p, id=name, marks=() if name in quick else pytest.mark.slow)
            for name, p in ARCHITECTURES.items()
        ],
    )


POSITIONS = 8


def network(mlp, depth=BLOCKS, residual=None, norm=None, **others):
    return kp.Transformer(kp.identity(POSITIONS), depth, mlp, residual, norm, **others)


def correlation_map(model, correlations):
    """What becomes of correlations: position 0's with the others, which lie on a circle."""
    angles = np.arccos(np.resize(correlations, POSITIONS - 1))
    angles = np.concatenate([[0.0], angles])
    last = kp.propagate(model, np.cos(angles[:, None] - angles), keep="last").kernels[0]
    return (last[0] / np.sqrt(last[0, 0] * np.diagonal(last)))[1:]


def at_zero(values, orders):
    """Extrapolate values at distances h, h/2, h/4, … to 0, their errors being powers of h."""
    for order in orders:
        values = (2.0**order * values[1:] - values[:-1]) / (2.0**order - 1)
    return values[-1]


def slope_at_one(model):
    distance = 0.02 / 2.0 ** np.arange(7)
    return at_zero((1 - correlation_map(model, 1 - distance)) / distance, range(1, 7))


def curvature_at_one(model):
    distance = 0.08 / 2.0 ** np.arange(7)
    return at_zero(2 * (correlation_map(model, 1 - distance) - 1 + distance) / distance**2, range(1, 7))


@some_architectures("Pre-norm, changing")
def test_dks_gives_the_whole_network_its_slope(parts):
    shaped = shape_activation(network(kp.MLP("gelu"), **parts), "dks", zeta=1.4)
    assert slope_at_one(shaped) == pytest.approx(1.4, abs=1e-9)


@some_architectures("Post-norm")
def test_smooth_tat_gives_the_whole_network_its_curvature(parts):
    shaped = shape_activation(network(kp.MLP("tanh"), **parts), "tat", tau=0.2)
    assert slope_at_one(shaped) == pytest.approx(1.0, abs=1e-9)
    assert curvature_at_one(shaped) == pytest.approx(0.2, abs=2e-7)


@some_architectures("parallel, Post-norm")
def test_tat_of_a_leaky_relu_carries_correlation_0_to_eta(parts):
    # A leaky ReLU scales with its input, so that gains that change the variance are no obstacle.
    model = network(kp.MLP("leaky_relu", gain_in=1.2, gain_out=0.9), **parts)
    assert correlation_map(shape_activation(model, "tat", eta=0.05), [0.0])[0] == pytest.approx(0.05, abs=1e-9)


def test_without_a_target_the_papers_values_are_taken():
    mlp = kp.MLP("leaky_relu")
    model = shape_activation(network(mlp, depth=36), "tat")
    assert model.mlp.activation.parameters == kp.tat("leaky_relu", 36).parameters
    assert correlation_map(model, [0.0])[0] == pytest.approx(0.9, abs=1e-9)
    assert shape_activation(network(kp.MLP("gelu"), depth=8)).mlp.activation.parameters == kp.dks("gelu", 8).parameters


def test_case_28_the_number_of_nonlinear_layers_is_the_networks():
    with pytest.raises(ValueError, match=r"12 nonlinear layers; the ceiling, .* is 0\.89714805176775"):
        shape_activation(network(kp.MLP("leaky_relu"), depth=12), "tat", eta=0.9)
    twice = shape_activation(network(kp.MLP("leaky_relu"), depth=24), "tat", eta=0.9)
    assert twice.mlp.activation.parameters["negative_slope"] == pytest.approx(0.2385026021471218, abs=1e-12)


def test_case_29_a_skip_of_squared_weight_one_half():
    half = np.sqrt(0.5)
    model = network(kp.MLP("relu", gain_in=np.sqrt(2)), 3, kp.Residual((0, 1), (half, half)))
    assert correlation_map(model, [0.0])[0] == pytest.approx(0.3758659073696712, abs=1e-12)
    # A shaped leaky ReLU keeps the variance by its own scale.
    unscaled = network(kp.MLP("relu"), 3, kp.Residual((0, 1), (half, half)))
    with pytest.raises(ValueError, match=r"ceiling, that of the ReLU, is 0\.37586590736967"):
        shape_activation(unscaled, "tat", eta=0.9)


def test_blocks_whose_branch_has_weight_0_are_not_counted():
    switched_off = kp.Residual((1, 0), (1.0, [0.0, 1.0, 0.0]))
    with pytest.raises(ValueError, match="by 1 nonlinear layers"):
        shape_activation(network(kp.MLP("relu"), 3, switched_off), "tat")


def test_gains_in_front_of_a_smooth_activation_are_taken_up_by_its_input_scale():
    model = network(kp.MLP("gelu", gain_in=2.0), 8)
    parameters = dict(shape_activation(model).mlp.activation.parameters)
    assert parameters.pop("input_scale") == kp.dks("gelu", 8).parameters["input_scale"] / 2


def test_positions_count_as_part_of_the_input():
    positions = 0.5 * np.eye(POSITIONS)
    model = network(kp.MLP("relu"), 2, residual=SKIPS, norm="pre", positions=positions)
    assert block_maps(model).shares[0][1] == pytest.approx(0.49 / (1.5 + 0.25 + 0.49), abs=1e-15)
    shaped = shape_activation(model, "tat", eta=0.05)
    assert correlation_map(shaped, [0.0])[0] == pytest.approx(0.05, abs=1e-9)
    uneven = np.diag(np.linspace(0.5, 1, POSITIONS))
    with pytest.raises(ValueError, match=r"positions add 0\.5 to 1 to the variances"):
        shape_activation(network(kp.MLP("gelu"), norm="pre", positions=uneven))


@pytest.mark.parametrize(
    ("model", "method", "targets", "message"),
    [
        (network(None), "dks", {}, "the network has no MLP"),
        (network(kp.GatedMLP("silu")), "dks", {}, "the map of a GatedMLP is the activation's times the gate's"),
        (network(kp.MLP("gelu", bias_in=0.1)), "dks", {}, "bias_in adds a common part"),
        (network(kp.MLP("gelu")), "dls", {}, "method 'dls' is unknown; use 'dks' or 'tat'"),
        (network(kp.MLP("gelu")), "dks", {"eta": 0.9}, "eta: 0.9 was given; it has no meaning for method 'dks'"),
        (network(kp.MLP("gelu")), "tat", {"zeta": 1.5}, "zeta: 1.5 was given; it has no meaning for method 'tat'"),
        (network(kp.MLP("gelu")), "tat", {"eta": 0.9}, "eta: 0.9 was given; it shapes a leaky ReLU"),
        (network(kp.MLP(kp.dks("gelu", 3))), "dks", {}, r"dks\(gelu\) is shaped already"),
        (network(kp.MLP("square")), "dks", {}, "square can't be shaped by DKS"),
        (network(kp.MLP("gelu"), residual=kp.Residual((1, 1), (1, 1))), "dks", {}, "is 2 in block 1 and 6 in block 2"),
        (
            network(kp.MLP("gelu"), residual=SKIPS, norm=kp.Norm("pre", epsilon=1e-5)),
            "dks",
            {},
            "in front of the activation is 0.999992.* a smooth activation is shaped for one: .* epsilon=0",
        ),
        (network(kp.MLP("gelu"), residual=kp.Residual((1, 0), (0, 0))), "dks", {}, "block 1: skip and branch both"),
    ],
)
def test_what_cannot_be_shaped_is_refused(model, method, targets, message):
    with pytest.raises(ValueError, match=message):
        shape_activation(model, method, **targets)


def test_nothing_else_of_the_network_changes():
    model = network(kp.MLP("gelu", expansion=2), residual=SKIPS, norm="pre", gains=kp.Gains(query=0.5))
    shaped = shape_activation(model)
    assert shaped.mlp.activation.name == "dks(gelu)"
    assert (shaped.depth, shaped.mlp.expansion, shaped.norm) == (model.depth, 2, model.norm)
    assert model.mlp.activation.name == "gelu"


def test_every_solve_takes_less_than_a_third_of_a_second():
    model = network(kp.MLP("gelu"), 24, kp.Residual((1, 0.3), (1, 0.3)), "pre")
    shape_activation(model)  # what JAX compiles on first use is not the solve
    start = time.process_time()
    shape_activation(model)
    assert time.process_time() - start < 0.3
