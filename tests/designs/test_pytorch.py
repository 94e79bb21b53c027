"""The lines that use a design in PyTorch compute what the design says."""

from pathlib import Path

import numpy as np
import pytest

import kernelprop as kp
from kernelprop.designs import design

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


def test_there_are_about_twenty_lines():
    text = LINES.read_text(encoding="utf-8")
    code = [line for line in text.splitlines() if line and not line.startswith(("import", "from"))]
    assert len(code) <= 21
