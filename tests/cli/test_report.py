"""What is printed: no number is cut, whatever the width; marks and undefined numbers are readable."""

import io

import numpy as np
import pytest

import kernelprop as kp
from kernelprop.cli.report import Report, print_report


def printed(evolution, width, measured=None):
    from rich.console import Console

    stream = io.StringIO()
    print_report(Report(evolution, measured), [0, evolution.layers], Console(file=stream, width=width))
    return stream.getvalue()


@pytest.fixture(scope="module")
def evolution():
    model = kp.Transformer(kp.uniform(4, causal=True), 3)
    return kp.propagate(model, kp.kernels.exponential(4, 0.5), observables="all")


@pytest.mark.parametrize("width", [40, 76, 80, 200])
def test_every_number_is_whole_at_every_width(evolution, width):
    text = printed(evolution, width, np.array([0.1, 0.2, 0.3, 0.4567891]))
    assert "…" not in text
    row = evolution.table([3])[0]
    for number in (f"{row['mean_correlation']:.7f}", "0.4567891", f"{row['effective_rank']:.5g}"):
        assert number in text
    assert text.count("depth") == (1 if width == 200 else 2)


def test_a_table_fits_a_terminal_of_eighty_columns(evolution):
    text = printed(evolution, 80, np.array([0.1, 0.2, 0.3, 0.4]))
    tables = text[: text.index("attention alone")]
    assert max(len(line.rstrip()) for line in tables.splitlines()) <= 80


def test_a_correlation_of_rounding_is_printed_as_0_and_one_beyond_it_is_not():
    from kernelprop.cli.compare import _readable
    from kernelprop.diagnosis.collapse import unless_rounding

    assert [unless_rounding(c) for c in (1.9e-17, -1.9e-17, 1e-14)] == [0.0, 0.0, 1e-14]
    assert unless_rounding(1 - 2**-53) == 1 - 2**-53
    row = {"name": "mean_correlation", "predicted": 1.9e-17, "measured": 2e-8, "z": 0.0, "difference": 1e-9}
    assert [_readable(row)[name] for name in ("predicted", "measured", "difference")] == [0, 0, 1e-9]
    assert _readable(row | {"name": "rank_residual"})["predicted"] == 1.9e-17


def test_zero_has_no_sign():
    from kernelprop.cli.report import _unsigned_zero

    assert [_unsigned_zero(text) for text in ("-0.0000", "0.0", "-0.1")] == ["0.0000", "0.0", "-0.1"]
