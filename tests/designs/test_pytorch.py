"""The lines that use a design in PyTorch compute what the design says, and what our finite network computes."""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import kernelprop as kp
from kernelprop.designs import design
from kernelprop.finite.network import cast, forward, network

LINES = Path(__file__).with_name("pytorch_attention.txt")
T, DEPTH, WIDTH, HEADS = 16, 6, 256, 4  # width and heads are those of the lines
NAMES = ("query", "key", "value", "output")


@pytest.fixture(
    scope="module",
    params=[{"kernel0": kp.kernels.exponential(T, 0.5)}, {"attention": "uspa", "causal": False}],
    ids=["espa, fitted", "uspa, not causal"],
)
def designed(request, tmp_path_factory):
    """A design, and the layers that the lines make of its file."""
    pytest.importorskip("torch")
    made = design(T, depth=DEPTH, activation=None, **request.param)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("design"))
        made.save("kernelprop-design")
        names: dict = {}
        exec(compile(LINES.read_text(encoding="utf-8"), LINES.name, "exec"), names)
    return made, names["layers"]


def run(layers, x):
    import torch

    with torch.no_grad():
        output = torch.tensor(x, dtype=torch.float32)
        for layer in layers:
            output = layer(output)
    return output.numpy()


def weights(layers):
    """The weights as our network takes them: ``(L, fan_in, fan_out)`` by name."""
    return {name: np.stack([getattr(layer, name).weight.detach().numpy().T for layer in layers]) for name in NAMES}


def ours(model, layers, x):
    """The output of our finite network with the same weights, for every example."""
    net = cast(network(model, WIDTH, heads=HEADS, gradients=True), jnp.float32)
    source = {name: jnp.asarray(matrix) for name, matrix in weights(layers).items()}
    return np.asarray(jax.jit(jax.vmap(lambda one: forward(net, one, source)[0]))(jnp.asarray(x, jnp.float32)))


def examples():
    return np.random.default_rng(0).standard_normal((2, T, WIDTH))


@pytest.mark.slow  # PyTorch's first start
def test_the_layers_mix_positions_as_designed(designed):
    made, layers = designed
    expected, drawn = examples(), weights(layers)
    for number, matrix in enumerate(made.model.attention.as_matrix()):
        expected = matrix @ expected @ drawn["value"][number].astype(float) @ drawn["output"][number].astype(float)
    np.testing.assert_allclose(run(layers, examples()), expected, atol=1e-5)


@pytest.mark.slow
def test_the_layers_are_our_finite_network_with_the_same_weights(designed):
    made, layers = designed
    assert not weights(layers)["query"].any()
    np.testing.assert_allclose(run(layers, examples()), ours(made.model, layers, examples()), atol=1e-5)


@pytest.mark.slow
def test_they_are_it_too_once_the_queries_have_moved(designed):
    """The logits' scale, the order of heads and the place of the bias: none of it shows while the queries are 0."""
    import torch

    made, layers = designed
    before = run(layers, examples())
    generator = torch.Generator().manual_seed(0)
    try:
        with torch.no_grad():
            for layer in layers:
                layer.query.weight.normal_(std=WIDTH**-0.5, generator=generator)
        moved = run(layers, examples())
        assert np.abs(moved - before).max() > 0.1
        np.testing.assert_allclose(moved, ours(made.model, layers, examples()), atol=1e-5)
    finally:
        for layer in layers:
            torch.nn.init.zeros_(layer.query.weight)


def test_there_are_about_twenty_lines():
    text = LINES.read_text(encoding="utf-8")
    code = [line for line in text.splitlines() if line and not line.startswith(("import", "from"))]
    assert len(code) <= 21
