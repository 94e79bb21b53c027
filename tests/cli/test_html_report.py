"""``kernelprop report``: the page is written whole, and the verdict told."""

import numpy as np
import pytest

import kernelprop as kp

HEALTHY = '[attention]\nkind = "espa"\nlength = 6\ndepth = 3\ngamma = 0.1\n'
STILL = '[attention]\nkind = "identity"\nlength = 4\ndepth = 3\n'
SICK = '[attention]\nkind = "uniform"\nlength = 6\ndepth = 3\n'


@pytest.fixture
def networks(tmp_path):
    (tmp_path / "healthy.toml").write_text(HEALTHY)
    (tmp_path / "sick.toml").write_text(SICK)
    return tmp_path


@pytest.mark.slow
def test_a_healthy_network_is_told_so(command, networks):
    ran = command("report healthy.toml")
    assert ran.code == 0
    assert "healthy: keeps its signal" in ran.out
    assert (networks / "kernelprop-report.html").read_text(encoding="utf-8").startswith("<!doctype html>")


@pytest.mark.slow
def test_a_sick_one_gets_its_findings_and_fixes(command, networks):
    ran = command("report sick.toml --out page.html")
    assert ran.code == 0
    for words in (
        "problem: The network collapses by layer 1",
        "cures it: residual scale",
        "Judged by: mean correlation ",
        " < 0.99, rank residual ",
        "rank residual, last: 0 -> 0.",
        "not possible here: shaped activation: there is no plain MLP whose activation could be shaped",
    ):
        assert words in ran.out
    # Off a terminal each stage has its line as soon as it begins.
    stages = ("the network as it is, forward", "the network as it is, gradients", "residual scale")
    assert ran.err.startswith("".join(f"computing: {stage} ...\n" for stage in stages))
    ran = command("report sick.toml --out page.html --json")
    assert not ran.table["healthy"]
    assert {tuple(one["remedies"]) for one in ran.table["suggestions"]} >= {("residual scale",)}
    assert all(one["cures"] for one in ran.table["suggestions"])
    assert all(one["description"].startswith("[attention]") for one in ran.table["suggestions"])
    assert ran.table["files"] == ["page.html"]
    for one in ran.table["suggestions"] + ran.table["tried"]:
        assert one["cures"] == (one["after"] is not None and not any(margin["ill"] for margin in one["judged_by"]))
    assert ran.err == ""
    assert command("report sick.toml --out page.html --quiet")[1:] == ("", "")


@pytest.mark.slow
def test_fixes_of_given_attention_are_written_beside_the_page(command, tmp_path):
    """Their descriptions load, and give the numbers that the report states."""
    np.save(tmp_path / "A.npy", np.full((5, 5), 0.2))
    assert command("evolve --attention A.npy --depth 3 --no-plots --quiet --out run").code == 0
    ran = command("report run/evolution.npz --out page.html --json")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    (scaled,) = [one for one in ran.table["suggestions"] if one["remedies"] == ["residual scale"]]
    text, arrays = scaled["description_files"]
    assert scaled["description"] is None
    assert {"page.html", text, arrays} <= set(ran.table["files"])
    assert sorted(file.name for file in tmp_path.glob("page*")) == sorted(ran.table["files"])
    assert f"The changed network as a description: {text} beside this page, its arrays in {arrays}." in page
    described = kp.load_description(tmp_path / text)
    evolution = kp.propagate(described.model, described.kernel0, "last")
    assert evolution.rank_residual[-1] == pytest.approx(scaled["after"]["rank_residual"], rel=1e-12)
    assert (
        f"as a description: {text}, its arrays in {arrays}" in command("report run/evolution.npz --out page.html").out
    )
    # E-SPA needs no arrays: its description is on the page.
    (preserving,) = [one for one in ran.table["suggestions"] if one["remedies"] == ["signal-preserving attention"]]
    assert 'kind = "' in preserving["description"]
    assert preserving["description_files"] == []


@pytest.mark.slow
def test_a_stream_that_explodes_before_a_final_norm_is_a_problem(command, tmp_path, monkeypatch):
    monkeypatch.setattr("kernelprop.diagnosis.diagnose.REMEDIES", ())  # what is found, without what would fix it
    (tmp_path / "final.toml").write_text(
        f"{STILL}\n[residual]\nattention = [4.0, 1.0]\n\n[norm]\nplace = 'pre'\nfinal = true\n"
    )
    table = command("report final.toml --json").table
    (growth,) = [one for one in table["findings"] if one["kind"] in ("growth", "shrinkage")]
    assert growth["kind"] == "growth"
    assert growth["ill"]
    assert growth["words"].endswith("from 1 to 4.37e+03 after layer 3, before the final norm")  # 16³ + 16² + 16 + 1
    page = (tmp_path / "kernelprop-report.html").read_text(encoding="utf-8")
    assert "Diagonal: mean variance of the positions, before the final norm" in page
    assert table["numbers"]["diagonal_factor_largest"] == pytest.approx(4369, rel=1e-12)


@pytest.mark.slow
def test_given_rows_that_are_no_shares_are_remarked_on(command, tmp_path):
    (tmp_path / "given.toml").write_text('[attention]\nkind = "dense"\nmatrix = [[2.0, 0.0], [0.0, 1.0]]\n')
    remark = "given attention: 1 of 2 rows does not sum to 1, the largest deviation is 1 (position 0)"
    assert f"note: {remark}" in command("report given.toml").out
    assert command("report given.toml --json").table["notes"][0].startswith(remark)
    assert f"<strong>Note:</strong> {remark}" in (tmp_path / "kernelprop-report.html").read_text(encoding="utf-8")


BAD = [
    ("report", "Missing argument"),
    ("report missing.toml", "missing.toml: no such file"),
    ("report healthy.toml --out page.pdf", "--out page.pdf: a name that ends in .html is wanted"),
    ("report healthy.toml --out none/page.html", "--out none/page.html: the folder none does not exist"),
    ("report healthy.toml --cotangent first", "'first'"),
    ("report page-fix-1.toml --out page.html", "its fixes could be written over page-fix-1.toml, which is read"),
]


@pytest.mark.parametrize(("arguments", "message"), BAD)
def test_bad_input_is_one_line_and_nothing_is_written(command, networks, arguments, message):
    before = sorted(networks.iterdir())
    ran = command(arguments)
    assert ran.code == 2
    assert message in ran.err
    assert ran.err.count("\n") == 1
    assert sorted(networks.iterdir()) == before
