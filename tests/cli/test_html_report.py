"""``kernelprop report``: the page is written whole, and the verdict told."""

import pytest

HEALTHY = '[attention]\nkind = "espa"\nlength = 6\ndepth = 3\ngamma = 0.1\n'
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
    ):
        assert words in ran.out
    ran = command("report sick.toml --out page.html --json")
    assert not ran.table["healthy"]
    assert {tuple(one["remedies"]) for one in ran.table["suggestions"]} >= {("residual scale",)}
    assert all(one["cures"] for one in ran.table["suggestions"])
    for one in ran.table["suggestions"] + ran.table["tried"]:
        assert one["cures"] == (one["after"] is not None and not any(margin["ill"] for margin in one["judged_by"]))
    assert ran.err == ""
    assert command("report sick.toml --out page.html --quiet")[1:] == ("", "")


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
]


@pytest.mark.parametrize(("arguments", "message"), BAD)
def test_bad_input_is_one_line_and_nothing_is_written(command, networks, arguments, message):
    before = sorted(networks.iterdir())
    ran = command(arguments)
    assert ran.code == 2
    assert message in ran.err
    assert ran.err.count("\n") == 1
    assert sorted(networks.iterdir()) == before
