"""``kernelprop gradients``: the table of the library, written, printed and drawn."""

import csv
from dataclasses import replace

import pytest

import kernelprop as kp
from kernelprop.descriptions import load_description
from tests.cli.conftest import strict_json

TOML = """
[attention]
kind = "espa"
length = 4
depth = 2
gamma = 0.1
[mlp]
activation = "relu"
[residual]
attention = [0.8, 0.6]
mlp = [0.8, 0.6]
[input]
kind = "equicorrelated"
correlation = 0.3
"""
LINEAR = TOML.split("[mlp]")[0]


@pytest.fixture
def network(tmp_path):
    (tmp_path / "net.toml").write_text(TOML)
    (tmp_path / "linear.toml").write_text(LINEAR)
    return load_description(tmp_path / "net.toml")


def test_it_writes_and_prints_what_the_library_computes(command, network, tmp_path):
    expected = kp.gradient_norms(network.model, network.kernel0, width=16)
    ran = command("gradients net.toml --width 16 --out out")
    assert ran.code == 0
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        "gradients.npz", "gradients.csv", "gradients.json", "gradients.png",
    }  # fmt: skip
    assert kp.load(tmp_path / "out" / "gradients.npz") == expected
    rows = list(csv.DictReader((tmp_path / "out" / "gradients.csv").read_text().splitlines()))
    assert [row["layer"] for row in rows] == ["1", "2"]
    for name in ("query", "key", "value", "output", "mlp_in", "mlp_out"):
        assert [float(row[name]) for row in rows] == getattr(expected, name).tolist()
        assert f"{expected.value[0]:.6g}" in ran.out
    # Under a ReLU the query row is at first order, and the table says so.
    assert [row["query_exact"] for row in rows] == ["false", "false"]
    assert f"{expected.query[1]:.6g}*" in ran.out
    assert "* first order" in ran.out


@pytest.mark.slow
def test_json_cotangent_and_method(command, network, tmp_path):
    expected = kp.gradient_norms(network.model, network.kernel0, "last", query_method="exact")
    ran = command("gradients net.toml --cotangent last --query-method exact --json --no-plots --out out")
    assert ran.code == 0
    assert ran.table["norms"]["query"] == expected.query.tolist()
    assert ran.table["query_exact"] == [True, True]
    assert not (tmp_path / "out" / "gradients.png").exists()


def test_the_balancing_temperature_balances(command, network, tmp_path):
    """τ² times the query norms of a linear network, whose value norms don't depend on τ, sum to the value norms."""
    ran = command("gradients linear.toml --balance --json --no-plots --out out")
    norms = {name: sum(values) for name, values in ran.table["norms"].items()}
    temperature = (norms["value"] / norms["query"]) ** 0.5
    assert ran.table["balancing_temperature"] == pytest.approx(temperature, rel=1e-6)
    written = strict_json((tmp_path / "out" / "gradients.json").read_text())
    assert written == ran.table
    told = command("gradients linear.toml --balance --no-plots --out out")
    assert f"balances query and value gradients: {temperature:.6g}" in told.out
    assert "* first order" not in told.out


def test_standard_errors_stand_beside_the_norms_that_have_some(command, network, tmp_path, monkeypatch):
    """As under random attention, which has them for all rows; here made up for two, queries at first order."""
    norms = kp.gradient_norms(network.model, network.kernel0)
    norms = replace(norms, stderr={"query": 0.01 * norms.query, "value": 0.02 * norms.value})
    monkeypatch.setattr("kernelprop.gradients.gradient_norms", lambda *arguments: norms)
    ran = command("gradients net.toml --no-plots --out out")
    rows = list(csv.DictReader((tmp_path / "out" / "gradients.csv").read_text().splitlines()))
    table = strict_json((tmp_path / "out" / "gradients.json").read_text())["norms"]
    for name in ("query", "value"):
        assert [float(row[f"{name}_stderr"]) for row in rows] == norms.stderr[name].tolist()
        assert table[f"{name}_stderr"] == norms.stderr[name].tolist()
    assert "output_stderr" not in rows[0].keys() | table.keys()
    assert f"{norms.query[0]:.6g}* +- {0.01 * norms.query[0]:.2g}" in ran.out
    assert f"{norms.value[1]:.6g} +- {0.02 * norms.value[1]:.2g}" in ran.out
    assert "norm +- standard error" in ran.out


def test_show_prints_and_draws_them_again(command, network, tmp_path):
    first = command("gradients net.toml --out out")
    (tmp_path / "out" / "gradients.png").unlink()
    again = command("show out/gradients.npz")
    assert again.code == 0
    assert again.out.splitlines()[:6] == first.out.splitlines()[:6]
    assert (tmp_path / "out" / "gradients.png").exists()
    assert command("show out/gradients.npz --show 1").code == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("missing.toml", "missing.toml"),
        ("net.toml --cotangent first", "first"),
        ("net.toml --query-method guess", "guess"),
        ("net.toml --width 0", "width"),
    ],
)
def test_bad_input_is_one_line(command, network, tmp_path, options, message):
    ran = command(f"gradients {options} --out out")
    assert ran.code == 2
    assert message in ran.err
    assert ran.err.count("\n") == 1
    assert not (tmp_path / "out").exists()
