"""Results: one file that comes back equal, tables, CSV and strict JSON."""

import csv
import dataclasses
import json

import equinox as eqx
import numpy as np
import pytest

import kernelprop as kp
from kernelprop import observables, results, storage
from kernelprop.results import Estimate, Evolution, GradientNorms
from kernelprop.stored_form import MissingFunction, storable


@storable
class Network(eqx.Module):
    attention: np.ndarray
    activation: object = None


def evolution(kernels, keep=None, description=None, **more):
    """What an engine would return for these kernels at depths 0…L."""
    layers = kernels.shape[-3] - 1
    kept = np.arange(layers + 1) if keep is None else np.array(keep)
    return Evolution(
        depth=kept,
        kernels=kernels[..., kept, :, :],
        diagonal=observables.diagonal(kernels),
        mean_correlation=observables.mean_correlation(kernels),
        rank_residual=observables.rank_residual(kernels),
        participation_ratio=observables.participation_ratio(kernels),
        undefined=observables.undefined_tokens(kernels).any(-1),
        below_floor=np.zeros(kernels.shape[:-2], bool),
        description=description,
        **more,
    )


def spectral(kernels):
    return {
        "eigenvalues": observables.eigenvalues(kernels),
        "effective_rank": observables.effective_rank(kernels),
        "stable_rank": observables.stable_rank(kernels),
        "eigenvalue_gap": observables.eigenvalue_gap(kernels),
    }


def collapsing(length=4, layers=3):
    """Depth 0 the identity, depth 1 half way, then collapsed, then all zero."""
    ones = np.ones((length, length))
    stack = [np.eye(length), 0.5 * np.eye(length) + 0.5 * ones, ones, 0 * ones]
    return np.stack(stack[: layers + 1])


def refuse(constant):
    raise AssertionError(f"{constant} is not JSON")


def test_an_evolution_comes_back_equal(tmp_path):
    kernels = collapsing()
    model = Network(np.tril(np.ones((2, 4, 4))), np.tanh)
    one = evolution(kernels, keep=[0, 3], description=model, notes=("a note",), **spectral(kernels))
    one.save(tmp_path / "one.npz")
    back = results.load(tmp_path / "one.npz", functions={"tanh": np.tanh})
    assert back == one
    assert back.notes == ("a note",)
    assert back.description.activation is np.tanh
    assert np.isnan(back.rank_residual[3])
    for field in dataclasses.fields(Evolution):
        value = getattr(one, field.name)
        assert type(getattr(back, field.name)) is type(value)


def test_equality_sees_every_array_and_the_description():
    one = evolution(collapsing(), description=Network(np.eye(2)))
    assert one == evolution(collapsing(), description=Network(np.eye(2)))
    assert one != evolution(collapsing(), description=Network(2 * np.eye(2)))
    assert one != evolution(collapsing(), keep=[0], description=Network(np.eye(2)))
    assert one != dataclasses.replace(one, rank_residual=one.rank_residual + 1e-16 * np.arange(4))
    assert one != dataclasses.replace(one, notes=("x",))
    assert one != dataclasses.replace(one, kernels_stderr=one.kernels)
    assert one != 3


def test_arrays_load_without_the_users_function(tmp_path):
    one = evolution(collapsing(), description=Network(np.eye(2), lambda x: x))
    one.save(tmp_path / "one.npz")
    back = results.load(tmp_path / "one.npz")
    assert back == one
    assert back.description.activation == MissingFunction("<lambda>")


NETWORKS = {
    "espa": lambda: kp.Transformer(kp.espa(5, depth=3)),
    "uspa": lambda: kp.Transformer(kp.uspa(5, depth=3)),
    "uniform": lambda: kp.Transformer(kp.uniform(5, causal=True), depth=3),
    "mix": lambda: kp.Transformer(kp.mix(kp.uniform(5), 0.9, 0.1), depth=3),
    "dense": lambda: kp.Transformer(kp.dense(np.full((3, 2, 5, 5), 0.2)), residual=kp.Residual(attention=(0.8, 0.6))),
    "prescribed": lambda: kp.Transformer(kp.signal_preserving(np.stack([np.eye(5)] * 4))),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_real_descriptions_come_back_equal(name, tmp_path):
    model = NETWORKS[name]()
    storage.save(model, tmp_path / "model.npz")
    back = storage.load(tmp_path / "model.npz")
    assert type(back) is type(model)
    assert storage.equal(back, model)


def test_a_loaded_description_computes_the_same(tmp_path):
    one = kp.propagate(NETWORKS["espa"](), kp.kernels.identity(5))
    one.save(tmp_path / "one.npz")
    back = kp.load(tmp_path / "one.npz")
    assert back == one
    assert kp.propagate(back.description, kp.kernels.identity(5)) == one


def test_other_types_of_answers(tmp_path):
    norms = GradientNorms(
        query=np.zeros(2),
        key=np.zeros(2),
        value=np.ones(2),
        output=np.ones(2),
        mlp_in=None,
        mlp_out=None,
        query_exact=np.array([False, True]),
        width=64,
    )
    estimate = Estimate(np.ones(3), np.full(3, 0.1), 100)
    for value in (norms, estimate):
        storage.save(value, tmp_path / "value.npz")
        assert results.load(tmp_path / "value.npz") == value
    norms.save(tmp_path / "norms.npz")
    assert results.load(tmp_path / "norms.npz") != estimate


def test_a_file_that_holds_no_result(tmp_path):
    storage.save([1, 2], tmp_path / "list.npz")
    with pytest.raises(ValueError, match=r"list\.npz: holds a list, which is no result"):
        results.load(tmp_path / "list.npz")


def test_kernels_by_depth():
    one = evolution(collapsing(), keep=[0, 2])
    np.testing.assert_array_equal(one.kernel(2), np.ones((4, 4)))
    np.testing.assert_array_equal(evolution(collapsing()).kernel(-2), np.ones((4, 4)))
    with pytest.raises(ValueError, match=r"depth 1: its kernel was not kept; kept depths: 0, 2"):
        one.kernel(1)
    assert (one.layers, one.length) == (3, 4)


def test_table():
    table = evolution(collapsing()).table()
    assert [row["depth"] for row in table] == [0, 1, 2, 3]
    assert list(table[1].items())[:6] == [
        ("depth", 1),
        ("mean_correlation", 0.5),
        ("diagonal_minimum", 1.0),
        ("diagonal_maximum", 1.0),
        ("rank_residual", pytest.approx(np.sqrt(0.5 * 3 / 4))),
        ("participation_ratio", pytest.approx(4 / (1 + 3 / 4))),
    ]
    assert "effective_rank" not in table[0]
    assert table[3]["undefined"] is True
    assert np.isnan(table[3]["mean_correlation"])


def test_table_of_some_depths_with_spectral_columns():
    kernels = collapsing()
    table = evolution(kernels, **spectral(kernels)).table([0, -2])
    assert [row["depth"] for row in table] == [0, 2]
    assert [row["effective_rank"] for row in table] == pytest.approx([4, 1])
    assert [row["stable_rank"] for row in table] == pytest.approx([4, 1])
    with pytest.raises(ValueError, match="depth 4: the network has depths 0 to 3"):
        evolution(kernels).table([4])


def test_table_of_a_batch():
    kernels = np.stack([collapsing(), 2 * collapsing()])
    table = evolution(kernels).table([0])
    assert [(row["batch"], row["depth"], row["diagonal_maximum"]) for row in table] == [("0", 0, 1), ("1", 0, 2)]
    assert evolution(kernels[None]).table([0])[1]["batch"] == "0,1"


def test_table_has_standard_errors_where_there_are_some():
    table = evolution(collapsing(), rank_residual_stderr=np.full(4, 0.1)).table()
    assert table[0]["rank_residual_stderr"] == 0.1
    assert "mean_correlation_stderr" not in table[0]


def test_csv_holds_every_digit(tmp_path):
    kernels = collapsing() / 3
    one = evolution(kernels, **spectral(kernels))
    one.to_csv(tmp_path / "table.csv")
    with (tmp_path / "table.csv").open(newline="") as stream:
        read = list(csv.DictReader(stream))
    assert [float(row["rank_residual"]) for row in read[:3]] == one.rank_residual[:3].tolist()
    assert read[3]["mean_correlation"] == "nan"
    assert read[2]["eigenvalue_gap"] == "inf"


def test_json_is_strict_case_64(tmp_path):
    kernels = collapsing()
    one = evolution(kernels, **spectral(kernels))
    one.to_json(tmp_path / "one.json")
    read = json.loads((tmp_path / "one.json").read_text(), parse_constant=refuse)
    values = read["observables"]
    assert values["eigenvalue_gap"] == [1.0, pytest.approx(5), "inf", None]
    assert values["eigenvalue_ratio"] == [1.0, pytest.approx(0.2), 0.0, None]
    assert values["mean_correlation"] == [0.0, 0.5, 1.0, None]
    assert values["undefined"] == [False, False, False, True]
    assert np.shape(values["diagonal"]) == (4, 4)
    assert read["definitions"]["effective_rank"] == observables.DEFINITIONS["effective_rank"]


def test_an_output_folder_that_is_missing(tmp_path):
    one = evolution(collapsing())
    for write in (one.save, one.to_csv, one.to_json):
        with pytest.raises(ValueError, match="does not exist"):
            write(tmp_path / "absent" / "file")
    assert list(tmp_path.iterdir()) == []
