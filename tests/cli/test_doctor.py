"""``kernelprop doctor``: what is told, and that a faulty installation is noticed."""

import numpy as np
import pytest

from kernelprop.cli import installation


@pytest.mark.slow
def test_a_sound_installation_is_told_in_words_and_in_json(command):
    ran = command("doctor")
    assert ran.code == 0
    for words in ("python 3.", "jax ", "device cpu", "right: jit against eager mode", "right: kernel recursion"):
        assert words in ran.out
    ran = command("doctor --json")
    assert (ran.code, ran.table["sound"]) == (0, True)
    assert [check["name"] for check in ran.table["checks"]][:2] == ["jax version", "float64"]
    ran = command("doctor --quiet")
    assert (ran.code, ran.out) == (0, "")


def test_wrong_numbers_under_jit_are_noticed(command, monkeypatch):
    """A jit that loses a digit in one row stands in for the release that did so in 3,612 of them."""
    import jax

    sound = jax.jit

    def faulty(function, **settings):
        compiled = sound(function, **settings)

        def run(*arguments):
            found = np.array(compiled(*arguments))
            if found.shape == (installation.ROWS,):
                found[17] *= 1 + 1e-9
            return found

        return run

    monkeypatch.setattr(jax, "jit", faulty)
    right, words = installation._jit_computes_what_eager_mode_computes()
    assert not right
    assert words.startswith(f"wrong: 1 of {installation.ROWS} rows in jit;")


def test_a_release_known_to_be_wrong_is_named_with_what_to_install(monkeypatch):
    monkeypatch.setattr(installation, "_version", lambda name: "0.10.2")
    right, words = installation._version_is_sound()
    assert not right
    assert "install 'jax>=0.9.2" in words


@pytest.mark.parametrize("switch", ["", "--quiet", "--json"])
def test_an_unsound_installation_ends_with_1_and_says_so(command, monkeypatch, switch):
    bad = [installation.Check("float64", False, "1 - 1e-12 is lost")]
    monkeypatch.setattr(installation, "self_checks", lambda: bad)
    ran = command(f"doctor {switch}")
    assert ran.code == 1
    assert "1 - 1e-12 is lost" in ran.out + ran.err
    assert (ran.err != "") == (switch == "--quiet")


def test_a_check_that_breaks_is_not_right():
    def broken():
        raise RuntimeError("no\ndevice")

    assert installation._run("x", broken) == installation.Check("x", False, "failed: RuntimeError: no device")
