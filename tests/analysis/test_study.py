"""The machinery of studies: hashes, records, resuming, points at the same time, and messages."""

import json
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest

from analysis import __main__ as entry
from analysis.catalogue import NAMES, kind_of
from analysis.fields import with_fields
from analysis.running import run
from analysis.study import command, read, record_name
from analysis.token_mismatch import Spec as TokenMismatch
from analysis.trainability import Spec as Trainability
from tests.analysis.toy import Toy


def computed(folder):
    file = folder / "computed"
    return file.read_text().split() if file.exists() else []


def test_the_hash_knows_every_field_and_nothing_else():
    toy = Toy()
    assert record_name(toy) == record_name(Toy())
    changed = [Toy(base=3.0), Toy(powers=(0, 1, 2)), Toy(seed=1), Toy(notes="elsewhere")]
    assert len({record_name(one) for one in [toy, *changed]}) == 5
    with pytest.raises(FrozenInstanceError):
        toy.base = 1.0  # pyright: ignore


def test_a_record_comes_back_as_it_was_computed(tmp_path):
    toy = Toy(seed=7)
    arrays, words = run(toy, tmp_path)
    assert (arrays.name, words.name) == (f"{record_name(toy)}.npz", f"{record_name(toy)}.json")
    found = read(toy, tmp_path)
    np.testing.assert_array_equal(found.stack("power"), [1.0, 2.0, 4.0, 8.0])
    for power in range(4):
        wanted = np.random.default_rng([7, power]).normal(size=3)
        np.testing.assert_array_equal(found.at(str(power))["drawn"], wanted)
    said = json.loads(words.read_text())
    assert said["spec"] == {"notes": "", "powers": [0, 1, 2, 3], "base": 2.0, "fails_at": -1, "seed": 7}
    assert {"time", "device", "jax", "numpy", "kernelprop"} <= said["environment"].keys()
    assert said["seconds"] >= 0
    with pytest.raises(KeyError, match="no point '9'"):
        found.at("9")


def test_a_stopped_run_goes_on_where_it_was(tmp_path):
    toy = Toy(notes=str(tmp_path))
    (tmp_path / "stop").touch()
    with pytest.raises(KeyboardInterrupt):
        run(toy, tmp_path)
    assert computed(tmp_path) == ["0", "1"]
    with pytest.raises(ValueError, match="no such record"):
        read(toy, tmp_path)
    (tmp_path / "stop").unlink()
    told = []
    run(toy, tmp_path, progress=lambda done, total, point: told.append((done, total, point)))
    assert told == [(2, 4, ""), (3, 4, "2"), (4, 4, "3")]
    run(toy, tmp_path)
    assert computed(tmp_path) == ["0", "1", "2", "3"]
    assert not list((tmp_path / "unfinished").rglob("*.npz"))
    run(toy, tmp_path, again=True)
    assert computed(tmp_path) == ["0", "1", "2", "3"] * 2


def test_points_at_the_same_time_give_the_same_numbers(tmp_path):
    toy, folders = Toy(seed=3), [tmp_path / "one", tmp_path / "two"]
    for folder, jobs in zip(folders, (1, 2), strict=True):
        folder.mkdir()
        run(toy, folder, jobs=jobs)
    alone, together = (read(toy, folder) for folder in folders)
    for name in ("power", "drawn"):
        np.testing.assert_array_equal(alone.stack(name), together.stack(name))


def test_a_point_that_fails_is_named(tmp_path):
    with pytest.raises(ValueError, match=r"^toy: point 1: position 3 is zero$"):
        run(Toy(fails_at=1), tmp_path)


def test_the_message_of_a_missing_record_is_a_command_that_makes_it(tmp_path):
    with pytest.raises(ValueError, match=r"toy-\w{10}.json: no such record; python -m analysis toy makes it$"):
        read(Toy(), tmp_path)
    assert command(Toy.quick()) == "python -m analysis toy --quick"
    changed = Toy(base=0.5, powers=(1, 4))
    assert command(changed) == "python -m analysis toy --set powers=1,4 --set base=0.5"
    words = [word.removeprefix("--set ") for word in ("--set powers=1,4", "--set base=0.5")]
    assert with_fields(Toy(), words) == changed


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 and no more", b"{"])
@pytest.mark.parametrize("ending", [0, 1])
def test_a_broken_record_is_named_with_the_command_that_makes_it(tmp_path, ending, content):
    broken = run(Toy.quick(), tmp_path)[ending]
    broken.write_bytes(content)
    with pytest.raises(ValueError, match=f"{broken.name}: no record, or a broken one; python -m analysis toy --quick"):
        read(Toy.quick(), tmp_path)


def test_a_study_of_a_users_file_is_named_by_it(tmp_path):
    text, network = tmp_path / "my essay.txt", tmp_path / "network.toml"
    text.write_text("To be, or not to be.")
    network.write_text('[attention]\nkind = "uniform"\nlength = 4\ndepth = 2\n')
    of_text, of_network = TokenMismatch.of_file(text), Trainability.of_file(network)
    assert of_text.tokens == ("to", "be", ",", "or", "not", "to", "be", ".")
    assert command(of_text) == f"python -m analysis token_mismatch --input '{text}'"
    coarse = replace(of_network, betas=2, taus=3)
    assert command(coarse) == f"python -m analysis trainability --input {network} --set betas=2 --set taus=3"
    run(coarse, tmp_path)
    found = read(coarse, tmp_path).at("network")
    assert coarse.verdict(found).shape == (2, 3)
    # Queries start at zero: their gradient norm is proportional to the temperature, and nothing else knows of it.
    np.testing.assert_allclose(found["ratio_most"] / found["ratio_most"][:, :1], [[1, 32, 1024]] * 2, rtol=1e-12)
    network.write_text('[attention]\nkind = "uniform"\nlength = 5\ndepth = 2\n')
    with pytest.raises(ValueError, match="has changed since the study began"):
        run(coarse, tmp_path, again=True)


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        ("base", "a field=value is wanted"),
        ("bases=2", "the fields are notes, powers, base"),
        ("base=two", "base: a number is wanted, 'two' was given"),
        ("powers=1,x", "powers: a whole number is wanted, 'x' was given"),
        ("powers=", "powers: a list without entries"),
    ],
)
def test_a_field_that_is_wrong_is_named(assignment, message):
    with pytest.raises(ValueError, match=message):
        with_fields(Toy(), [assignment])


@pytest.mark.parametrize("name", NAMES)
def test_every_study_has_a_quick_form_and_points(name):
    kind = kind_of(name)
    assert kind.name == name
    assert kind.question.endswith("?")
    assert len(set(kind().points())) == len(kind().points())
    assert record_name(kind()) != record_name(kind.quick()) or kind() == kind.quick()
    assert replace(kind()) == kind()


def test_the_command_lists_and_refuses_in_one_line(tmp_path, capsys):
    assert entry.main(["--list", "--records", str(tmp_path)]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == list(NAMES)
    assert entry.main(["nothing"]) == 2
    assert capsys.readouterr().err.startswith("error: nothing: no such study; the studies are he2023_figure1")
    assert entry.main(["mismatch", "--input", "essay.txt"]) == 2
    assert capsys.readouterr().err == "error: --input: mismatch takes no file\n"
    assert entry.main(["token_mismatch", "--input", str(tmp_path / "essay.txt")]) == 2
    assert "can't be read as text" in capsys.readouterr().err
    (tmp_path / "essay.txt").write_text("to be or not to be")
    assert entry.main(["token_mismatch", "--input", str(tmp_path / "essay.txt"), "--quick"]) == 2
    assert "--quick: a study of --input has no quick form" in capsys.readouterr().err
    assert entry.main(["mismatch", "--jobs", "0"]) == 2
    assert capsys.readouterr().err == "error: --jobs: 0 is not positive\n"
    assert entry.main(["mismatch", "--quick", "--quiet", "--records", str(tmp_path / "essay.txt" / "in")]) == 2
    assert "essay.txt" in capsys.readouterr().err
