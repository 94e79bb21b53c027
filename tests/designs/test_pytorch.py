"""The lines that use a design in PyTorch compute what the design says."""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import kernelprop as kp
from kernelprop.designs import design
from kernelprop.finite import network as finite

LINES = Path(__file__).with_name("pytorch_attention.txt")


@pytest.mark.slow  # PyTorch's first start
@pytest.mark.parametrize(
    "options",
    [{"kernel0": kp.kernels.exponential(16, 0.5)}, {"attention": "uspa", "causal": False}],
    ids=["espa, fitted", "uspa, not causal"],
)
def test_the_layers_mix_positions_as_designed(options, tmp_path, monkeypatch):
    torch = pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    made = design(16, depth=6, activation=None, **options)
    made.save("kernelprop-design")
    names: dict = {}
    exec(compile(LINES.read_text(encoding="utf-8"), LINES.name, "exec"), names)
    x = np.random.default_rng(0).standard_normal((2, 16, 256))
    with torch.no_grad():
        output = torch.tensor(x, dtype=torch.float32)
        for layer in names["layers"]:
            output = layer(output)
    expected = x
    for layer, matrix in zip(names["layers"], made.model.attention.as_matrix(), strict=True):
        value, out = (weight.detach().numpy().astype(float) for weight in (layer.value.weight, layer.output.weight))
        expected = matrix @ expected @ value.T @ out.T
    np.testing.assert_allclose(output.numpy(), expected, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("random_queries", [False, True], ids=["zero queries", "random queries"])
def test_the_layers_are_our_finite_network_with_the_same_weights(random_queries, tmp_path, monkeypatch):
    """To 1e-5, with four heads, scores and all; layers in another order are rejected."""
    torch = pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    made = design(16, depth=6, activation=None)
    made.save("kernelprop-design")
    names: dict = {}
    exec(compile(LINES.read_text(encoding="utf-8"), LINES.name, "exec"), names)
    layers = names["layers"]
    if random_queries:
        for layer in layers:
            torch.nn.init.normal_(layer.query.weight, std=256**-0.5)
    x = np.random.default_rng(0).standard_normal((16, 256))
    with torch.no_grad():
        output = torch.tensor(x[None], dtype=torch.float32)
        for layer in layers:
            output = layer(output)
    matrices = ("query", "key", "value", "output")
    weights = {
        name: np.stack([getattr(layer, name).weight.detach().numpy().astype(float).T for layer in layers])
        for name in matrices
    }
    families = {"query": "gaussian"} if random_queries else "gaussian"
    net = finite.network(made.model, 256, heads=4, weights=families, gradients=True)
    with jax.enable_x64(True):
        given = {name: jnp.asarray(matrix) for name, matrix in weights.items()}
        ours, _, _ = finite.forward(finite.cast(net, jnp.float64), jnp.asarray(x), given)
        swapped = {name: matrix[::-1] for name, matrix in given.items()}
        other, _, _ = finite.forward(finite.cast(net, jnp.float64), jnp.asarray(x), swapped)
    np.testing.assert_allclose(output.numpy()[0], np.asarray(ours), atol=1e-5)
    assert np.abs(output.numpy()[0] - np.asarray(other)).max() > 0.1
    if random_queries:  # The scores are seen: the fixed matrices alone give another output.
        fixed = x
        for layer, matrix in enumerate(made.model.attention.as_matrix()):
            fixed = matrix @ fixed @ weights["value"][layer] @ weights["output"][layer]
        assert np.abs(output.numpy()[0] - fixed).max() > 0.1


def test_there_are_about_twenty_lines():
    text = LINES.read_text(encoding="utf-8")
    code = [line for line in text.splitlines() if line and not line.startswith(("import", "from"))]
    assert len(code) <= 21
