"""``kernelprop describe``, and descriptions as ``evolve`` takes them."""

import tomllib

import numpy as np
import pytest

import kernelprop as kp
from kernelprop.cli.described import plain_letters
from kernelprop.descriptions import load_description

TOML = """
[attention]
kind = "espa"
length = 8
depth = 4
[residual]
attention = [1, 0.5]
[input]
kind = "equicorrelated"
correlation = 0.25
"""


@pytest.fixture
def network(tmp_path):
    (tmp_path / "network.toml").write_text(TOML)


def test_a_file_in_words(command, network):
    ran = command("describe network.toml")
    assert (ran.code, ran.err) == (0, "")
    assert "X' = X + 0.5 Attn(X)" in ran.out
    assert "W_O  (H d_k, d)  variance 1/(H d_k)" in ran.out


def test_options_in_words_and_as_a_description_that_loads(command, tmp_path):
    options = "--attention uspa --length 6 --depth 3 --rho 0.5 --skip 1 --branch 0.3"
    assert "ρ_0 to ρ_3: 0, 0.206299, 0.370039, 0.5" in command(f"describe {options}").out
    text = command(f"describe {options} --toml").out
    assert tomllib.loads(text)["attention"]["rho"] == 0.5
    (tmp_path / "made.toml").write_text(text)
    assert load_description(tmp_path / "made.toml").model.depth == 3


def test_evolve_takes_a_description_and_its_input_kernel(command, network):
    rows = command("evolve network.toml --no-plots --json").table["rows"]
    assert rows[0]["mean_correlation"] == pytest.approx(0.25)
    expected = kp.propagate(
        kp.Transformer(kp.espa(8, 4), residual=kp.Residual((1, 0.5))), kp.kernels.equicorrelated(8, 0.25)
    )
    assert [row["mean_correlation"] for row in rows] == expected.mean_correlation.tolist()
    other = command("evolve network.toml --kernel identity --no-plots --json").table["rows"]
    assert other[0]["mean_correlation"] == 0


def test_a_saved_result_has_its_network(command, network):
    command("evolve network.toml --no-plots --quiet")
    assert command("describe kernelprop-output/evolution.npz").out == command("describe network.toml").out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("describe", "describe: a file or --attention is wanted"),
        ("describe missing.toml", "missing.toml: no such file"),
        ("describe network.toml --length 3", "network.toml: describes the whole network"),
        ("evolve network.toml --attention espa", "network.toml: describes the whole network; leave --example"),
        ("evolve network.toml --example minilm", "network.toml: describes the whole network; leave --example"),
        ("evolve network.toml --inputs missing.npy", "missing.npy: no such file"),
    ],
)
def test_bad_input_ends_in_one_line(command, network, arguments, message):
    ran = command(arguments)
    assert ran.code == 2
    assert ran.err.startswith(f"error: {message}")
    assert ran.err.count("\n") == 1


REMARK = (
    "given attention: 2 of 3 rows do not sum to 1, the largest deviation is 3 (position 1); "
    "1 entry is negative; raw logits need a softmax first"
)
LOGITS = [[1.0, 0.0, 0.0], [2.0, 3.0, -1.0], [0.5, 0.5, 1.5]]


@pytest.fixture
def logits(tmp_path):
    np.save(tmp_path / "logits.npy", LOGITS)
    (tmp_path / "logits.toml").write_text('[attention]\nkind = "dense"\nfile = "logits.npy"\n')


def test_given_rows_that_are_no_shares_are_remarked_on(command, logits):
    for arguments in ("describe logits.toml", "describe --attention logits.npy"):
        assert command(arguments).out.splitlines()[-1] == REMARK
        assert command(f"{arguments} --json").table["notes"] == [REMARK]


@pytest.mark.slow
def test_the_remark_goes_with_the_result(command, logits):
    command("evolve logits.toml --no-plots --quiet")
    assert command("describe kernelprop-output/evolution.npz").out.splitlines()[-1] == REMARK
    for arguments in ("evolve logits.toml --kernel identity", "evolve --attention logits.npy"):
        ran = command(f"{arguments} --no-plots")
        assert ran.out.splitlines().count(REMARK) == 1
        assert ran.err == ""
    assert REMARK in command("show kernelprop-output/evolution.npz --no-plots --json").table["notes"]


def test_constructions_are_not_remarked_on(command):
    assert "given attention" not in command("describe --attention espa --length 4 --depth 2 --alpha 1 --beta 1").out


def test_letters_that_a_stream_lacks_are_spelled_out():
    text = "Σ_Z = α₁² N(Σ) ∘ φ"
    assert plain_letters(text, "utf-8") == text
    assert plain_letters(text, "latin-1") == "S_Z = alpha1^2 N(S) * phi"
    assert plain_letters(text, None).isascii()


def test_options_describe_a_whole_block(command):
    ran = command(
        "describe --attention softmax --length 8 --depth 3 --temperature 2 --causal "
        "--mlp relu --expansion 2 --norm post --skip 0.8 --branch 0.6 --mlp-branch 0.5 --toml"
    )
    assert ran.code == 0
    described = tomllib.loads(ran.out)
    assert described["attention"]["kind"] == "random_softmax"
    assert described["attention"]["tau"] == 2
    assert (described["mlp"]["activation"], described["mlp"]["expansion"]) == ("relu", 2.0)
    assert described["norm"]["place"] == "post"
    assert described["residual"] == {"attention": [0.8, 0.6], "mlp": [0.8, 0.5]}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("espa --length 4 --temperature 2", "--temperature: has no meaning for --attention espa"),
        ("espa --length 4 --mlp-skip 1", "--mlp-skip: there is no MLP"),
        ("espa --length 4 --mlp squish", "squish"),
        ("espa --length 4 --norm between", "between"),
    ],
)
def test_options_that_make_no_network_are_refused(command, options, message):
    ran = command(f"describe --attention {options}")
    assert ran.code == 2
    assert message in ran.err
    assert ran.err.count("\n") == 1
