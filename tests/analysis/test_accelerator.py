"""The benchmark of sampled networks, small, on whatever device there is."""

import json

import pytest

from analysis.benchmarks import accelerator

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def found():
    told = []
    result = accelerator.measure(accelerator.SIZES["small"], lambda name, value: told.append(name))
    assert told == list(result)
    return result


def test_everything_is_measured_and_can_be_written(found):
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert found["speed"]["share of the product rate"].keys() == {"without drawing", "with drawing"}
    assert [row["layers"] for row in found["depth"]["rows"]] == [2, 4, 8]
    assert found["depth"]["building, deepest to shallowest"] < 2
    assert found["memory"]["peak resident, GiB"] < 3


def test_the_device_keeps_all_digits_and_agrees_with_the_prediction(found):
    assert abs(found["digits"]["highest"] - found["digits"]["exact"]) < 2e-7
    # Width 64 with 16 draws: a smoke test of the comparison, whose real size is the accelerator's.
    assert max(found["agreement"]["largest z"][name] for name in ("value", "output", "mlp_in", "mlp_out")) < 8
