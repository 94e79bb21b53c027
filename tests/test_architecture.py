"""A description with some parts changed: nothing is lost, and the checks run again."""

import numpy as np
import pytest

import kernelprop as kp
from kernelprop import storage

PARTS = {
    "mlp": kp.MLP("relu", gain_in=[1.0, 2.0, 3.0]),
    "residual": kp.Residual(attention=(1.0, [0.1, 0.2, 0.3]), mlp=(2.0, 3.0)),
    "norm": kp.Norm("pre", "rms", 0.1, True),
    "gains": kp.Gains(temperature=[1.0, 2.0, 3.0]),
    "positions": 0.5 * np.eye(4),
    "parallel": True,
}
MODEL = kp.Transformer(kp.espa(4, 3), **PARTS)


def test_every_part_but_the_replaced_one_stays():
    assert storage.equal(MODEL.replaced(), MODEL)
    for name in PARTS:
        without = kp.Transformer(kp.espa(4, 3), **{key: part for key, part in PARTS.items() if key != name})
        assert storage.equal(MODEL.replaced(**{name: None if name != "parallel" else False}), without)
        assert not storage.equal(without, MODEL)
    assert MODEL.replaced(norm="post").norm.place == "post"


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"depth": 5}, "depth=5 conflicts with the attention's 3 layers"),
        ({"attention": kp.espa(4, 2)}, "conflicts with the attention's 2 layers"),
        ({"norm": "between"}, "norm: place 'between' is unknown"),
        ({"positions": np.eye(3)}, r"positions: shape \(3, 3\) does not fit 4 positions"),
        ({"dropout": 0.1}, "dropout is not supported: it is not modelled, a network is described in evaluation mode"),
        ({"mpl": None}, "mpl is not supported"),
    ],
)
def test_a_replaced_part_is_checked(parts, message):
    with pytest.raises(ValueError, match=message):
        MODEL.replaced(**parts)
