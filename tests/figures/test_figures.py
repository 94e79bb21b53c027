"""Figures: drawn from records alone, without empty panels, and all in the gallery."""

import itertools
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from analysis.catalogue import NAMES, kind_of
from analysis.study import read
from figures import __main__ as entry
from figures.frame import HERE, command, draw_record, keep
from kernelprop.plotting.style import house_style, new_figure

GALLERY = Path(HERE, "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["rank_collapse", "he2023_figure1"])
def test_a_missing_record_is_an_error_that_names_the_command_that_makes_it(name, tmp_path, capsys):
    with pytest.raises(ValueError, match=rf"no such record; python -m analysis {name} makes it$"):
        draw_record(name, tmp_path, tmp_path)
    assert command(name, ["--records", str(tmp_path)]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_the_command_names_the_record_that_is_asked_for(tmp_path, capsys):
    assert command("mismatch", ["--records", str(tmp_path), "--set", "depth=5"]) == 2
    assert "python -m analysis mismatch --set depth=5 makes it" in capsys.readouterr().err


@pytest.mark.parametrize("name", NAMES)
def test_the_gallery_shows_every_figure_and_how_to_remake_it(name):
    assert f"({name}.png)" in GALLERY
    assert f"python -m analysis {name}" in GALLERY
    assert f"python -m figures.{name}" in GALLERY
    for ending in ("png", "svg"):
        assert (HERE / f"{name}.{ending}").is_file()
    assert (HERE / f"{name}.png").stat().st_size < 400_000


def texts(axes):
    """All that is written in and around a panel."""
    yield from (axes.title, axes._left_title, axes._right_title, *axes.texts)
    for axis in (axes.xaxis, axes.yaxis):
        yield axis.label
        low, high = sorted(axis.get_view_interval())
        yield from (t.label1 for t in axis.get_major_ticks() if low <= t.get_loc() <= high)
    yield from (() if axes.get_legend() is None else axes.get_legend().get_texts())


def everything_written(figure):
    for axes in figure.axes:
        yield from texts(axes) if axes.axison else ()
    for part in (figure, *figure.subfigs):
        yield from (t for legend in part.legends for t in legend.get_texts())
        yield from (t for t in (part._suptitle, part._supxlabel, part._supylabel) if t is not None)


def complaints(figure):
    """What a reader would stumble over: empty panels, zeros on logarithmic axes, words cut off or on top of others."""
    for axes in figure.axes:
        if axes.axison and not [*axes.lines, *axes.images, *axes.collections, *axes.patches]:
            yield f"{axes.get_title()!r} is empty"
        if axes.get_yscale() == "log" and any((np.asarray(line.get_ydata(), float) <= 0).any() for line in axes.lines):
            yield f"{axes.get_title()!r} has a zero on a logarithmic axis"
    with house_style():
        figure.draw_without_rendering()
        written = [text for text in everything_written(figure) if text.get_visible() and text.get_text().strip()]
        boxes = [text.get_window_extent() for text in written]
    page = figure.bbox
    for text, box in zip(written, boxes, strict=True):
        if not (page.x0 <= box.x0 and box.x1 <= page.x1 and page.y0 <= box.y0 and box.y1 <= page.y1):
            yield f"{text.get_text()!r} leaves the page"
    for (one, box), (other, another) in itertools.combinations(zip(written, boxes, strict=True), 2):
        # Rotated words have boxes much larger than they are.
        upright = one.get_rotation() % 90 == 0 and other.get_rotation() % 90 == 0
        if upright and box.padded(-1).overlaps(another.padded(-1)):
            yield f"{one.get_text()!r} lies on {other.get_text()!r}"


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_every_figure_is_drawn_from_its_record_and_can_be_read(name, tmp_path):
    figure = import_module(f"figures.{name}").draw(read(kind_of(name)()))
    files = keep(figure, name, tmp_path)
    assert all(file.stat().st_size > 10_000 for file in files)
    assert not list(complaints(figure))


def test_what_can_not_be_read_is_found():
    figure = new_figure(4, 2)
    left, right = figure.subplots(1, 2)
    left.plot([0, 1], [0, 1])
    left.set_yscale("log")
    left.text(0.5, 0.5, "one")
    left.text(0.52, 0.52, "other")
    left.text(-3, 0.5, "far away").set_in_layout(False)
    right.set_title("nothing")
    found = "; ".join(complaints(figure))
    for wanted in ("'nothing' is empty", "zero on a log", "'one' lies on 'other'", "'far away' leaves the page"):
        assert wanted in found


def test_an_unknown_figure_is_refused(capsys):
    with pytest.raises(SystemExit) as leaving:
        entry.main(["nothing"])
    assert leaving.value.code == 2
    assert "invalid choice" in capsys.readouterr().err
