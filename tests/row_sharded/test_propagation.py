"""A kernel spread by rows over four devices is the kernel of one."""

import os
import pickle
import re
import subprocess
import sys

import numpy as np
import pytest

import kernelprop as kp
from tests.row_sharded.cases import LENGTH, kernel, networks

PROGRAM = """
import pickle
import sys
import jax
import numpy as np
import kernelprop as kp
from kernelprop.row_sharded.propagation import compiled, mesh_over, propagate_sharded
from tests.row_sharded.cases import LENGTH, kernel, networks

assert jax.device_count() == 4, jax.devices()
found = {name: vars(propagate_sharded(model, kernel())) for name, model in networks().items()}
for one in found.values():
    del one["description"]
found["rows"] = vars(propagate_sharded(networks()["espa"], lambda a, b: kernel()[a:b], keep="none"))
del found["rows"]["description"]
for devices, message in ((jax.devices()[:3], "3 don't divide 32 positions"), ([], "0 don't divide")):
    try:
        propagate_sharded(networks()["espa"], kernel(), devices)
    except ValueError as error:
        assert message in str(error), error
    else:
        raise AssertionError(message)

length = 512
found["programs"] = {
    name: compiled(model, mesh_over(length), "float32").as_text()
    for name, model in {
        "structured": kp.Transformer(kp.espa(length, 2), mlp=kp.MLP("relu")),
        "dense": kp.Transformer(kp.dense(np.ones((2, length, length)) / length)),
    }.items()
}
pickle.dump(found, open(sys.argv[1], "wb"))
"""


@pytest.fixture(scope="module")
def on_four_devices(tmp_path_factory):
    path = tmp_path_factory.mktemp("rows") / "found.pickle"
    environment = os.environ | {"JAX_PLATFORMS": "cpu", "XLA_FLAGS": "--xla_force_host_platform_device_count=4"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(path)], env=environment, capture_output=True, text=True, timeout=400
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return pickle.loads(path.read_bytes())


@pytest.mark.slow
@pytest.mark.parametrize("name", networks())
def test_four_devices_find_what_one_finds(name, on_four_devices):
    found, here = on_four_devices[name], kp.propagate(networks()[name], kernel(), "last")
    for number in ("diagonal", "mean_correlation", "participation_ratio", "kernels"):
        np.testing.assert_allclose(found[number], getattr(here, number), rtol=1e-12, atol=1e-14, err_msg=number)
    # Far below the rounding of the kernel itself: 0.05 to the 80th, in the collapsing network.
    np.testing.assert_allclose(found["rank_residual"], here.rank_residual, rtol=1e-9, atol=1e-300)
    np.testing.assert_array_equal(found["undefined"], here.undefined)
    np.testing.assert_array_equal(found["below_floor"], here.below_floor)
    np.testing.assert_array_equal(found["depth"], here.depth)


@pytest.mark.slow
def test_rows_on_request_are_the_whole_kernel(on_four_devices):
    rows, whole = on_four_devices["rows"], on_four_devices["espa"]
    np.testing.assert_array_equal(rows["diagonal"], whole["diagonal"])
    assert rows["kernels"].shape == (0, LENGTH, LENGTH)
    assert rows["depth"].shape == (0,)
    assert "not tested" in rows["notes"][0]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["structured", "dense"])
def test_no_device_is_sent_or_holds_a_whole_matrix(name, on_four_devices):
    """What is gathered is vectors; the matrices in the program are rows, 128 of 512."""
    text = on_four_devices["programs"][name]
    assert "all-to-all" in text
    assert ("collective-permute" in text) == (name == "dense")
    sizes = [
        np.prod([int(n) for n in shape.split(",")])
        for line in text.splitlines()
        if "all-gather(" in line
        for shape in re.findall(r"= \w+\[([\d,]+)\]", line)
    ]
    assert sizes
    assert max(sizes) <= 4 * 512
    whole = [line for line in text.splitlines() if re.search(r"f32\[(\d+,)*512,512\]", line)]
    # The negative control: the same search finds the rows that each device holds.
    assert re.search(r"f32\[128,512\]", text)
    assert not whole, whole[:3]


def test_one_device_is_the_usual_result():
    model = kp.Transformer(kp.uspa(8, 3), mlp=kp.MLP("relu", gain_in=2**0.5))
    found, here = kp.propagate_sharded(model, kp.kernels.identity(8)), kp.propagate(model, kp.kernels.identity(8))
    np.testing.assert_allclose(found.kernels[-1], here.kernels[-1], rtol=1e-13)
    np.testing.assert_allclose(found.rank_residual, here.rank_residual, rtol=1e-13)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"keep": "all"}, "keep: 'all' is unknown"),
        ({"kernel0": np.ones((2, 4, 4))}, r"shape \(2, 4, 4\)"),
        ({"kernel0": lambda start, stop: np.zeros((1, 4))}, r"rows 0…3 have shape \(1, 4\)"),
        ({"kernel0": lambda start, stop: np.full((4, 4), np.nan)}, "position 0, 0: nan is not finite"),
        ({"kernel0": lambda start, stop: np.triu(np.ones((4, 4)))}, "rows 0…3 are not those of a symmetric matrix"),
        ({"model": kp.Transformer(kp.random_softmax(4), 2)}, "RandomSoftmax can't be followed by rows"),
    ],
)
def test_what_can_not_be_is_refused(given, message):
    arguments = {"model": kp.Transformer(kp.uniform(4), 2), "kernel0": np.eye(4)} | given
    with pytest.raises(ValueError, match=message):
        kp.propagate_sharded(**arguments)


def test_rounding_of_orthogonal_positions_is_no_asymmetry():
    """Entries of 1e-17 beside a diagonal of 1 differ from their mirror image by all of themselves."""
    features = np.linalg.qr(np.random.default_rng(4).standard_normal((100, 100)))[0][:33] * 10
    kernel = features @ features.T / 100
    kernel[0, 1], kernel[1, 0] = 2e-17, -3e-17
    found = kp.propagate_sharded(kp.Transformer(kp.uniform(33)), lambda start, stop: kernel[start:stop], keep="none")
    assert np.isfinite(found.rank_residual).all()
