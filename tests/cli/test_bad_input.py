"""Bad input: one clear line on stderr, exit code 2, nothing written."""

import zipfile

import numpy as np
import pytest

from kernelprop import memory


@pytest.fixture
def files(matrices):
    """One file for each way in which a file can be wrong."""
    from safetensors.numpy import save_file

    def save(name, values):
        np.save(matrices / name, values)

    save("nan.npy", [[1.0, np.nan], [np.nan, 1.0]])
    save("inf.npy", np.where(np.arange(96).reshape(2, 3, 4, 4) == 37, np.inf, 0.25))
    save("negative.npy", -np.eye(3))
    save("asymmetric.npy", [[1, 0.5], [0.4, 1]])
    save("indefinite.npy", [[1, 0.9, 0.1], [0.9, 1, 0.9], [0.1, 0.9, 1]])
    save("excess.npy", [[26.0, 26.1], [26.1, 26.0]])
    save("half.npy", np.eye(3, dtype=np.float16))
    save("long.npy", np.eye(3, dtype=np.longdouble))
    save("complex.npy", np.eye(3) * 1j)
    save("wide.npy", np.ones((3, 4)))
    save("four.npy", np.eye(4))
    save("ids.npy", np.array([1, 2, 1, 3]))
    np.save(matrices / "objects.npy", np.array([{}, 1], object), allow_pickle=True)
    np.savez(matrices / "objects.npz", np.array([{}, 1], object))
    np.savez(matrices / "two.npz", a=np.eye(2), b=np.ones((4, 2, 2)))
    save_file({"x": np.eye(3), "half": np.eye(3, dtype=np.float16)}, matrices / "two.safetensors")
    _cut(matrices / "K.npy", "cut.npy", -5)
    _cut(matrices / "two.npz", "cut.npz", 300)
    _cut(matrices / "two.safetensors", "cut.safetensors", -9)
    (matrices / "text.npy").write_text("0.5, 0.5\n")
    (matrices / "text.npz").write_text("0.5, 0.5\n")
    (matrices / "empty.npz").touch()
    (matrices / "text.safetensors").write_text("0.5, 0.5\n" * 9)
    (matrices / "table.csv").write_text("0.5, 0.5\n")
    (matrices / "folder.npy").mkdir()
    (matrices / "taken").write_text("a file")
    with zipfile.ZipFile(matrices / "letters.npz", "w") as archive:
        archive.writestr("letter.txt", "hello")
    with zipfile.ZipFile(matrices / "false.npz", "w") as archive:
        archive.writestr("array.npy", "hello")
    damaged = bytearray((matrices / "two.npz").read_bytes())
    damaged[150:160] = b"0123456789"
    (matrices / "damaged.npz").write_bytes(damaged)


def _cut(source, name, end):
    (source.parent / name).write_bytes(source.read_bytes()[:end])


BAD = [
    # what the options ask for
    ("evolve", "DESCRIPTION, --attention or --example: nothing to propagate through"),
    ("evolve --example bert", "--example: 'bert' is unknown; there is minilm"),
    (
        "evolve --attention espaa --length 4",
        "'espaa' is no file, and no construction (espa, uspa, uniform, identity, sliding_window, softmax)",
    ),
    ("evolve --attention A.npy --kernel diagonal", "'diagonal' is no file, and no construction (identity,"),
    ("evolve --attention A.npy --observables most", "observables: 'most' is unknown; use 'moments' or 'all'"),
    ("evolve --attention A.npy --dtype float16", "dtype: float16 is not supported; use float32 or float64"),
    ("evolve --attention A.npy --dtype longdouble", "is not supported; use float32 or float64"),
    ("evolve --attention A.npy --keep some", "--keep: 'some' is no list of depths"),
    ("evolve --attention A.npy --keep 0,9", "keep: depth 9 is outside 0…1"),
    ("evolve --attention A.npy --show 9", "--show: depth 9 is outside 0 to 1"),
    ("evolve --attention A.npy --show x", "--show: 'x' is no list of depths"),
    ("evolve --attention A.npy --depth three", "'--depth'"),
    ("evolve --attention A.npy --unknown 3", "--unknown"),
    ("evolve --attention A.npy surplus", "surplus"),
    ("evolute", "evolute"),
    # numbers
    ("evolve --attention espa", "--length: the number of positions is wanted"),
    ("evolve --attention espa --length 0", "length: 0 is too small; it must be at least 1"),
    ("evolve --attention espa --length 4 --depth -1", "depth: -1 is too small"),
    ("evolve --attention espa --length 4 --gamma -1", "gamma is -1; it must be positive"),
    ("evolve --attention espa --length 4 --gamma nan", "nan"),
    ("evolve --attention espa --length 4 --gamma 1 --gamma0 0.5", "layer 1: gamma rises from 0.5 to 1"),
    ("evolve --attention uspa --length 4 --rho 1", "rho is 1; it must lie in [0, 1)"),
    ("evolve --attention uspa --length 4 --rho=-0.1", "rho is -0.1; it must lie in [0, 1)"),
    ("evolve --attention uspa --length 4 --rho 0.1 --rho0 0.5", "layer 1: rho falls from 0.5 to 0.1"),
    ("evolve --attention A.npy --alpha nan", "alpha: nan"),
    ("evolve --attention A.npy --skip inf", "inf"),
    ("evolve --attention A.npy --kernel equicorrelated", "--correlation: a number is wanted"),
    ("evolve --attention A.npy --kernel equicorrelated --correlation 2", "--correlation: 2 for 3 positions"),
    ("evolve --attention A.npy --kernel exponential --decay -1", "--decay: -1 is negative"),
    # options that would be ignored
    ("evolve --attention uspa --length 4 --gamma 1", "--gamma: has no meaning for --attention uspa"),
    ("evolve --attention A.npy --causal", "--causal: has no meaning for --attention A.npy"),
    ("evolve --example minilm --rho 0.5", "--rho: has no meaning for the example's attention"),
    ("evolve --attention A.npy --decay 1", "--decay: belongs to --kernel exponential"),
    ("evolve --attention A.npy --correlation 0.1", "--correlation: belongs to --kernel equicorrelated"),
    ("evolve --attention A.npy --kernel K.npy --tokens a,b,c", "--kernel and --tokens: one input kernel is wanted"),
    # parts that don't fit each other
    ("evolve --attention A.npy --kernel four.npy", "four.npy: 4 positions, but the attention has 3"),
    ("evolve --attention A.npy --tokens ids.npy", "ids.npy: 4 positions, but the attention has 3"),
    ("evolve --attention A.npy --length 4", "--length: 4 conflicts with attention over 3 positions"),
    ("evolve --attention uniform --kernel K.npy --length 4", "--length: 4 conflicts with a kernel of 3 positions"),
    ("evolve --example minilm --depth 3", "depth=3 conflicts with the attention's 6 layers"),
    ("evolve --example minilm --kernel K.npy", "K.npy: 3 positions, but the attention has 55"),
    # what the arrays hold
    ("evolve --attention nan.npy", "nan.npy: attention: position 0, column 1: nan is not finite"),
    ("evolve --attention inf.npy", "inf.npy: attention: layer 1, head 2, position 1, column 1: inf is not finite"),
    ("evolve --attention wide.npy", "wide.npy: attention: shape (3, 4) is not"),
    ("evolve --attention half.npy", "half.npy: attention: dtype float16 is not supported; use float32 or float64"),
    ("evolve --attention long.npy", "is not supported; use float32 or float64"),
    ("evolve --attention complex.npy", "dtype complex128 is not supported"),
    ("evolve --attention A.npy --kernel nan.npy", "nan.npy: entry (0, 1) is nan"),
    ("evolve --attention A.npy --kernel negative.npy", "negative.npy: position 0: the diagonal is -1"),
    ("evolve --attention A.npy --kernel asymmetric.npy", "asymmetric.npy: not symmetric"),  # case 14
    ("evolve --attention A.npy --kernel indefinite.npy", "smallest eigenvalue is -0.2237739202857"),  # case 15
    ("evolve --attention A.npy --kernel excess.npy", "entry 26.1 exceeds sqrt(q_0 q_1) = 26"),  # case 26
    ("evolve --attention A.npy --kernel half.npy", "half.npy: dtype float16 is not supported"),
    ("evolve --attention A.npy --kernel long.npy", "is not supported; use float32 or float64"),  # case 61
    ("evolve --attention A.npy --kernel wide.npy", "wide.npy: shape (3, 4) is not (..., T, T)"),
    ("evolve --attention A.npy --tokens wide.npy", "wide.npy: tokens: shape (3, 4) is not (T,)"),
    ("evolve --attention A.npy --inputs ids.npy", "inputs: shape (4,) is not (T, d)"),
    # files
    ("evolve --attention missing.npy", "missing.npy: no such file"),
    ("evolve --attention folder.npy", "folder.npy: is a folder, not a file"),
    ("evolve --attention table.csv", "table.csv: files of .csv are not read; wanted: .npy, .npz, .safetensors"),
    ("evolve --attention text.npy", "text.npy: is not a .npy file, whatever its name says"),
    ("evolve --attention text.npz", "text.npz: is not a .npz file, or a broken one"),
    ("evolve --attention text.safetensors", "text.safetensors: is not a .safetensors file, or a broken one"),
    ("evolve --attention empty.npz", "empty.npz: is not a .npz file, or a broken one"),
    ("evolve --attention cut.npy", "cut.npy: is not a whole .npy file"),
    ("evolve --attention cut.npz", "cut.npz: is not a .npz file, or a broken one"),
    ("evolve --attention cut.safetensors", "cut.safetensors: is not a .safetensors file, or a broken one"),
    ("evolve --attention damaged.npz:a", "damaged.npz: is not a whole .npz file: it is broken or cut short"),
    ("evolve --attention letters.npz", "letters.npz: holds no arrays"),
    ("evolve --attention false.npz", "false.npz: array: is not an array, whatever its name says"),
    ("evolve --attention objects.npy", "objects.npy: holds Python objects (pickled), which are not read"),
    ("evolve --attention objects.npz", "objects.npz: holds Python objects (pickled), which are not read"),
    ("evolve --attention two.npz", "two.npz: holds several arrays; name one as two.npz:NAME, from a, b"),
    ("evolve --attention two.npz:c", "two.npz: holds no array 'c', but a, b"),
    ("evolve --attention two.npz:b[4]", "index 4 is outside its 4 matrices"),
    ("evolve --attention two.npz:a[0]", "an index picks one matrix of several"),
    ("evolve --attention A.npy:a", "A.npy: a .npy file holds one array without a name"),
    ("evolve --attention two.safetensors", "holds several arrays; name one as two.safetensors:NAME"),
    ("evolve --attention two.safetensors:half", "two.safetensors: half: dtype F16 is not supported"),
    # the output folder
    ("evolve --attention A.npy --out taken", "--out taken:"),
    ("evolve --attention A.npy --out taken/below", "--out taken/below:"),
    # show
    ("show", "Missing argument"),
    ("show missing.npz", "missing.npz: no such file"),
    ("show .", ".: is a folder; show wants the file of a result, such as ./evolution.npz (cut.npz, damaged.npz, "),
    ("show folder.npy", "such as folder.npy/evolution.npz (no .npz there)"),
    ("show two.npz", "two.npz: not a file of kernelprop, or a broken one"),
    ("show K.npy", "K.npy: not a file of kernelprop, or a broken one"),
]


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(("arguments", "message"), BAD, ids=[arguments for arguments, _ in BAD])
def test_bad_input_is_refused_in_one_line(command, tmp_path, arguments, message):
    before = sorted(tmp_path.rglob("*"))
    ran = command(arguments)
    assert ran.code == 2
    assert ran.out == ""
    assert ran.err.startswith("error: ")
    assert ran.err.count("\n") == 1
    assert message in ran.err
    assert sorted(tmp_path.rglob("*")) == before


def test_a_disk_that_refuses_is_told_before_anything_is_computed(command, matrices, monkeypatch):
    def refuse(*args, **kwargs):
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr("kernelprop.cli.run._propagate", lambda *args: pytest.fail("computed first"))
    monkeypatch.setattr("pathlib.Path.mkdir", refuse)
    ran = command("evolve --attention A.npy --out new")
    assert (ran.code, ran.err) == (2, "error: --out new: can't be written: Read-only file system\n")


def test_a_disk_that_fills_up_leaves_nothing_half_written(command, matrices, monkeypatch):
    def fail(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", fail)
    ran = command("evolve --attention A.npy --no-plots --quiet --out new")
    assert (ran.code, ran.err) == (2, "error: new/evolution.npz: can't be written: No space left on device\n")
    assert list((matrices / "new").iterdir()) == []


def test_a_length_that_no_memory_holds_is_refused_at_once(command, monkeypatch):
    monkeypatch.setattr(memory, "available_bytes", lambda: 10**9)
    ran = command("evolve --attention espa --length 100000")
    assert ran.code == 2
    assert "100000 positions: their kernels need 372.5 GiB, and 953.7 MiB are available" in ran.err


def test_a_reason_is_given_in_one_line_even_if_it_has_several(command, matrices, monkeypatch):
    def fail(*args, **kwargs):
        raise ValueError("first\nsecond")

    monkeypatch.setattr("kernelprop.cli.run._propagate", fail)
    assert command("evolve --attention A.npy").err == "error: first second\n"


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (KeyboardInterrupt(), 130, "interrupted: by Ctrl-C\n"),
        (MemoryError(), 2, "error: the memory does not suffice\n"),
        (FileNotFoundError(2, "No such file or directory", "gone"), 2, "error: gone: No such file or directory\n"),
    ],
)
def test_no_traceback_whatever_stops_the_run(command, matrices, monkeypatch, error, code, line):
    def fail(*args, **kwargs):
        raise error

    monkeypatch.setattr("kernelprop.cli.run._propagate", fail)
    ran = command("evolve --attention A.npy")
    assert (ran.code, ran.err) == (code, line)
    assert not (matrices / "kernelprop-output").exists()
