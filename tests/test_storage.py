"""One file that comes back equal: every kind of value, broken files, and what is refused."""

import json
import zipfile
from types import MappingProxyType

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from kernelprop import observables, storage
from kernelprop.stored_form import Encoder, MissingFunction, storable


@storable
class StandIn(eqx.Module):
    """A layer as the package has them: arrays, numbers, a static field, a function, layers inside."""

    matrices: np.ndarray
    scale: float = 1.0
    name: str = eqx.field(static=True, default="stand-in")
    activation: object = None
    inner: object = None

    def __check_init__(self):
        if self.scale < 0:
            raise ValueError("scale")


class Undeclared(eqx.Module):
    number: int


def cube(x):
    return x**3


def there_and_back(value, tmp_path, **functions):
    path = tmp_path / "value.npz"
    storage.save(value, path)
    return storage.load(path, functions or None)


VALUES = [
    None,
    True,
    7,
    2.5,
    float("inf"),
    float("-inf"),
    "γ = ∞",
    (1, (2.0, None), []),
    [1, [2, "a"]],
    {"a": 1, "b": (2,)},
    MappingProxyType({"tau": 0.3}),
    np.float64(0.1),
    np.float32(0.1),
    np.bool_(True),
    np.arange(6).reshape(2, 3),
    np.array(["[CLS]", "the"]),
    np.array([1.0, np.nan, np.inf]),
    np.zeros((0, 3), np.float32),
    np.dtype("float32"),
    {"a/b": np.ones(2), "a": {"b": np.zeros(3)}},
    observables.mean_correlation,
]


@pytest.mark.parametrize("value", VALUES, ids=lambda v: f"{type(v).__name__}-{str(v)[:12]}")
def test_every_kind_of_value_comes_back(value, tmp_path):
    back = there_and_back(value, tmp_path)
    assert type(back) is type(value)
    assert storage.equal(back, value)
    if not isinstance(value, np.ndarray | dict):
        assert back == value


def test_numbers_come_back_to_the_last_bit(tmp_path):
    numbers = [0.1, 1e-300, 5e-324, 1 / 3, 2**53 + 1, -0.0]
    assert [repr(x) for x in there_and_back(numbers, tmp_path)] == [repr(x) for x in numbers]
    assert np.isnan(there_and_back(float("nan"), tmp_path))


def test_a_tree_of_modules_comes_back_equal(tmp_path):
    tree = StandIn(np.eye(3), 0.5, "outer", None, (StandIn(np.ones((2, 2), np.float32)), {"k": 1}))
    back = there_and_back(tree, tmp_path)
    assert storage.equal(back, tree)
    assert isinstance(back, StandIn)
    assert back.inner[0].matrices.dtype == np.float32
    assert jax.tree.structure(back) == jax.tree.structure(tree)
    assert not storage.equal(back, eqx.tree_at(lambda t: t.scale, tree, 0.25))
    assert not storage.equal(back, eqx.tree_at(lambda t: t.matrices, tree, np.eye(3, dtype=np.float32)))
    assert not storage.equal(back, eqx.tree_at(lambda t: t.matrices, tree, np.eye(4)))


def test_jax_arrays_come_back_as_numpy_arrays(tmp_path):
    back = there_and_back(StandIn(jnp.arange(3.0)), tmp_path)
    assert isinstance(back.matrices, np.ndarray)
    assert storage.equal(back, StandIn(jnp.arange(3.0)))


def test_bfloat16_comes_back_usable_case_63(tmp_path):
    back = there_and_back(jnp.array([0.5, 1.5, np.pi], jnp.bfloat16), tmp_path)
    assert back.dtype == np.float32
    np.testing.assert_array_equal(back, [0.5, 1.5, 3.140625])


def test_a_users_function_is_handed_back_by_name(tmp_path):
    model = StandIn(np.eye(2), activation=cube)
    back = there_and_back(model, tmp_path, cube=cube)
    assert back.activation is cube
    assert storage.equal(back, model)


def test_without_the_function_the_rest_loads(tmp_path):
    model = StandIn(np.eye(2), activation=cube)
    back = there_and_back(model, tmp_path)
    np.testing.assert_array_equal(back.matrices, np.eye(2))
    assert storage.equal(back, model)
    assert back.activation == MissingFunction("cube")
    with pytest.raises(ValueError, match=r"'cube' was stored by name only; load the file with functions="):
        back.activation(1.0)
    again = there_and_back(back, tmp_path, cube=cube)
    assert again.activation is cube


def test_two_functions_of_one_name_stay_two(tmp_path):
    first, second = (lambda x: x), (lambda x: 2 * x)
    functions = {"<lambda>": first, "<lambda> 2": second}
    assert there_and_back([first, second, first], tmp_path, **functions) == [first, second, first]


def test_a_users_callable_object_counts_as_a_function(tmp_path):
    class Cube(eqx.Module):
        power: float = 3.0

        def __call__(self, x):
            return x**self.power

    assert there_and_back(Cube(), tmp_path) == MissingFunction("Cube")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"model": {"layers": [1, object()]}}, r"model/layers/1: builtins:object can't be stored"),
        ([Undeclared(1)], "Undeclared can't be stored; declare its class with storable"),
        ({1: 2}, "key 1 can't be stored"),
        ({"x": np.array([object()])}, "x: an array of object can't be stored"),
        ([jax.random.key(0)], "can't be stored"),
        (type("Pair", (tuple,), {})((1, 2)), "Pair can't be stored; use a plain tuple"),
    ],
    ids=["object", "class", "key", "objects", "prng", "subclass"],
)
def test_what_cannot_be_stored_is_named_and_nothing_is_written(value, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        storage.save(value, tmp_path / "value.npz")
    assert list(tmp_path.iterdir()) == []


def test_only_dataclasses_can_be_declared():
    with pytest.raises(ValueError, match="is no dataclass"):
        storable(int)


def test_the_metadata_is_strict_json_and_the_arrays_are_plain(tmp_path):
    path = tmp_path / "value.npz"
    storage.save({"a": float("nan"), "b": np.array([np.nan])}, path)

    def refuse(constant):
        raise AssertionError(constant)

    with zipfile.ZipFile(path) as file:
        json.loads(file.read("metadata.json"), parse_constant=refuse)
    with np.load(path, allow_pickle=False) as file:
        assert np.isnan(file["b"]).all()


# Files that are not what they say.


def tampered(tmp_path, content, arrays=None):
    path = tmp_path / "tampered.npz"
    metadata = {"format": "kernelprop", "version": 1, "content": content}
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("metadata.json", json.dumps(metadata))
        for name, array in (arrays or {}).items():
            with file.open(f"{name}.npy", "w") as entry:
                np.lib.format.write_array(entry, array)
    return path


def test_a_missing_file(tmp_path):
    with pytest.raises(ValueError, match=r"nowhere\.npz: no such file"):
        storage.load(tmp_path / "nowhere.npz")


@pytest.mark.parametrize("keep", [0, 1, 10, 200, 0.5, 0.9, 0.99])
def test_a_truncated_file_is_one_line(keep, tmp_path):
    path = tmp_path / "value.npz"
    storage.save(StandIn(np.ones((20, 20))), path)
    whole = path.read_bytes()
    path.write_bytes(whole[: keep if isinstance(keep, int) else int(keep * len(whole))])
    with pytest.raises(ValueError, match=r"value\.npz: ") as error:
        storage.load(path)
    assert "\n" not in str(error.value)


def test_a_flipped_byte_is_noticed(tmp_path):
    path = tmp_path / "value.npz"
    storage.save(np.ones(1000), path)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"value\.npz"):
        storage.load(path)


@pytest.mark.parametrize(("offset", "value"), [(8, 1), (10, 0x63)], ids=["encrypted", "packed in an unknown way"])
def test_an_archive_that_can_not_be_unpacked(tmp_path, offset, value):
    path = tmp_path / "value.npz"
    storage.save(np.ones(3), path)
    content = bytearray(path.read_bytes())
    content[content.index(b"PK\x01\x02") + offset] = value
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"value\.npz: not a file of kernelprop, or a broken one"):
        storage.load(path)


def test_a_file_name_may_be_as_long_as_names_get(tmp_path):
    path = tmp_path / ("a" * 251 + ".npz")
    storage.save(np.arange(3), path)
    np.testing.assert_array_equal(storage.load(path), [0, 1, 2])
    with pytest.raises(ValueError, match="can't be written"):
        storage.save(np.arange(3), tmp_path / ("a" * 300 + ".npz"))
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_foreign_files(tmp_path):
    text, array, archive = tmp_path / "a.txt", tmp_path / "a.npy", tmp_path / "a.npz"
    text.write_text("not an archive")
    np.save(array, np.ones(3))
    np.savez(archive, x=np.ones(3))
    for path in (text, array, archive):
        with pytest.raises(ValueError, match="not a file of kernelprop, or a broken one"):
            storage.load(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"class": "os:system", "fields": {}}, "os:system is not part of kernelprop"),
        ({"class": "subprocess:Popen", "fields": {"args": "ls"}}, "is not part of kernelprop"),
        ({"class": "kernelprop.files:os", "fields": {}}, "no class that can be rebuilt"),
        ({"class": "kernelprop.files:write_whole", "fields": {}}, "no class that can be rebuilt"),
        ({"class": "kernelprop.nowhere:Thing", "fields": {}}, "nowhere"),
        ({"function": "kernelprop.files:os.system"}, "there is no function"),
        ({"function": "os:system"}, "is not part of kernelprop"),
        ({"class": "kernelprop.results:Estimate", "fields": {"mean": 1}}, "field 'stderr' is missing"),
        ({"class": "kernelprop.results:Estimate", "fields": {"novel": 1}}, "no field 'novel'"),
        ({"unknown": 1}, "can't be read"),
        ({"array": "absent"}, "can't be read"),
        ({"a": 1, "b": 2}, "can't be read"),
    ],
)
def test_a_file_cannot_name_anything_outside_the_package(content, message, tmp_path):
    with pytest.raises(ValueError, match=message) as error:
        storage.load(tampered(tmp_path, content))
    assert "tampered.npz" in str(error.value)


def test_pickles_are_never_loaded(tmp_path):
    path = tampered(tmp_path, {"array": "x"}, {"x": np.array([{"a": 1}], dtype=object)})
    with pytest.raises(ValueError, match="not a file of kernelprop"):
        storage.load(path)


def test_a_later_format_is_refused(tmp_path):
    path = tmp_path / "later.npz"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("metadata.json", json.dumps({"format": "kernelprop", "version": 2, "content": 1}))
    with pytest.raises(ValueError, match="format version 2; this release reads 1"):
        storage.load(path)


# Writing.


def test_a_folder_that_does_not_exist(tmp_path):
    with pytest.raises(ValueError, match=r"the folder .*absent does not exist"):
        storage.save(1, tmp_path / "absent" / "value.npz")


def test_a_folder_in_place_of_the_file(tmp_path):
    with pytest.raises(ValueError, match="is a folder"):
        storage.save(1, tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="does not exist"):
        storage.save(1, tmp_path / "file" / "value.npz")


def test_nothing_half_written(tmp_path, monkeypatch):
    path = tmp_path / "value.npz"
    storage.save(np.zeros(3), path)

    def full(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np.lib.format, "write_array", full)
    with pytest.raises(ValueError, match=r"value\.npz: can't be written: No space left on device"):
        storage.save(np.ones(3), path)
    assert [p.name for p in tmp_path.iterdir()] == ["value.npz"]
    np.testing.assert_array_equal(storage.load(path), np.zeros(3))


def test_classes_of_the_package_need_no_declaration():
    form = Encoder().encode(MissingFunction("f"), "")
    assert form == {"user_function": "f"}
