"""``kernelprop design``: what it prints, what it writes, what it refuses."""

import pytest

import kernelprop as kp
from kernelprop.descriptions import load_description


def test_it_writes_files_and_shows_that_the_kernel_is_kept(command, tmp_path):
    ran = command("design --length 8 --depth 3 --activation none --out mine")
    assert ran.code == 0
    rows = {line[:17].strip(): line[17:].split() for line in ran.out.splitlines()}
    assert rows["attention alone"][:2] == rows["prescribed end"][:2] == rows["whole network"][:2]
    assert float(rows["attention alone"][-1]) < 1e-12
    assert {path.name for path in tmp_path.iterdir()} == {"mine.safetensors", "mine.toml"}
    assert load_description(tmp_path / "mine.toml").model.depth == 3
    assert "written: mine.safetensors, mine.toml" in ran.out


@pytest.mark.slow  # one more activation to compile
def test_it_prints_the_shaped_parameters(command):
    ran = command("design --length 8 --depth 3 --activation leaky_relu --eta 0.2")
    assert f"negative_slope = {kp.tat('leaky_relu', 3, eta=0.2).parameters['negative_slope']:.9g}" in ran.out


def test_it_fits_the_schedule_to_tokens_and_evolve_reads_the_result(command):
    ran = command("design --depth 3 --attention uspa --tokens to,be,or,not,to,be --activation none")
    assert "rho0 = 0.133333 fits the input" in ran.out
    rows = command("evolve kernelprop-design.toml --no-plots --json").table["rows"]
    assert rows[0]["mean_correlation"] == pytest.approx(2 / 15)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("design", "--length: the number of positions is wanted"),
        ("design --length 4 --tokens a,b,c", "--length: 4 conflicts with a kernel of 3 positions"),
        ("design --length 4 --attention dense", "design: attention 'dense' is unknown"),
        ("design --length 4 --depth 3 --activation leaky_relu", "eta: 0.9 can't be reached by 3 nonlinear layers"),
        ("design --length 4 --activation none --out missing/mine", "--out missing/mine: the folder missing does"),
        ("design --length 4 --gamma -1", "espa: depth 1: gamma is -1"),
    ],
)
def test_bad_input_ends_in_one_line_and_writes_nothing(command, tmp_path, arguments, message):
    ran = command(arguments)
    assert ran.code == 2
    assert ran.err.startswith(f"error: {message}")
    assert not list(tmp_path.iterdir())
