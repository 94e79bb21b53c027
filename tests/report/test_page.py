"""The page as text: whole, strict, alone, with the numbers in it."""

import json
import re
from html import escape
from html.parser import HTMLParser

import numpy as np
import pytest

from kernelprop.report.charts import Chart, Line, figure
from kernelprop.report.heatmaps import kept_depths, shown_positions
from kernelprop.report.page import _part, write_page
from kernelprop.report.scales import Scale, depth_ticks, log_scale
from kernelprop.report.sections import judged_by
from kernelprop.report.tables import number
from tests.report import sick

VOID = {"meta", "input", "path", "circle", "br"}


class Outline(HTMLParser):
    """Fails where a tag is closed that was not opened last."""

    def __init__(self):
        super().__init__()
        self.open, self.attributes = [], []

    def handle_starttag(self, tag, attrs):
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.attributes += attrs

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def made():
    return sick.text()


@pytest.mark.slow
def test_every_tag_is_closed_and_every_id_is_one(made):
    outline = Outline()
    outline.feed(made[0])
    assert outline.open == []
    ids = [value for name, value in outline.attributes if name == "id"]
    assert len(ids) == len(set(ids))


@pytest.mark.slow
def test_it_names_no_other_file_and_no_host(made):
    assert not re.search(r"https?:|//\w|\bsrc=|\bhref=|@import|url\(", made[0].split('id="data"')[0])
    assert "{{style}}" not in made[0]


@pytest.mark.slow
def test_it_says_what_was_found_and_what_each_fix_changes(made):
    text, found = made
    assert found.suggestions
    assert "Then still" not in text or found.suggestions
    for finding in found.before.findings:
        assert finding.words.removeprefix("the ") in text
    for attempt in found.suggestions:
        for words in attempt.changes:
            assert words in text
    for attempt in found.attempts:
        assert attempt.after is None or escape(judged_by(attempt.after)) in text
    assert text.count('<th scope="col">before</th>') == len(found.suggestions)


@pytest.mark.slow
def test_its_data_is_strict_json_of_the_kept_kernels(made):
    text, found = made

    def refuse(name):
        raise AssertionError(name)

    data = json.loads(re.search(r'id="data">(.*?)</script>', text, re.S)[1], parse_constant=refuse)
    assert [network["name"] for network in data] == ["as it is", *(a.name for a in found.suggestions)]
    assert data[0]["depths"] == list(range(sick.DEPTH + 1))
    np.testing.assert_allclose(data[0]["mean_correlation"], found.before.evolution.mean_correlation)


def test_a_page_that_cannot_be_written_leaves_nothing(tmp_path):
    with pytest.raises(ValueError, match="does not exist"):
        write_page(tmp_path / "none" / "page.html", "text")
    assert list(tmp_path.iterdir()) == []


def test_zeros_and_undefined_numbers_are_gaps_on_a_log_axis():
    """Case 65: no line through what the axis lacks, and a point between gaps is a dot."""
    values = np.array([1.0, 0.1, 0.0, 0.5, np.nan, 0.2, 0.3])
    text = figure(Chart("c", "depth", 0, [Line("a", values, 0)], log_scale([values])))
    lines = re.findall(r'<path d="(M[^"]*L[^"]*)" fill="none" stroke="#000000"', text)
    assert [len(line.split("L")) for line in lines] == [2, 2]
    assert text.count("<circle") == 1


def test_a_log_axis_of_zeros_alone_has_finite_ends():
    scale = log_scale([np.zeros(4)])
    assert (scale.low, scale.high) == (0.1, 1.0)
    assert scale.place(0.0) is None


def test_a_log_axis_does_not_follow_rounding_for_ever():
    assert log_scale([np.array([1.0, 1e-300])]).low >= 1e-19


@pytest.mark.parametrize("layers", [1, 2, 5, 24, 100, 1000])
def test_depth_ticks_are_few_rising_and_have_both_ends(layers):
    ticks = depth_ticks(0, layers)
    assert ticks == sorted(set(ticks))
    assert (ticks[0], ticks[-1]) == (0, layers)
    assert len(ticks) <= 9


def test_ticks_of_a_linear_axis_lie_on_it():
    for low, high in ((0, 1), (-0.09, 1), (0.88, 1.02), (0, 3.7)):
        ticks = Scale(low, high).ticks()
        assert len(ticks) >= 2
        assert all(low - 1e-9 <= tick <= high + 1e-9 for tick in ticks)


def test_the_mark_of_the_slider_is_in_every_legend_and_shown_by_what_moves_it():
    text = figure(Chart("c", "depth", 0, [Line("a", np.ones(2), 0)], Scale(0, 1)))
    assert '<li class="mark" hidden><span class="swatch slider"></span>depth of the slider</li></ul>' in text
    assert 'querySelectorAll(".legend .mark")' in _part("page.js")


def test_heat_maps_are_thinned_evenly():
    assert kept_depths(1) == [0, 1]
    assert kept_depths(100)[::6] == [0, 25, 50, 75, 100]
    assert len(shown_positions(512)) == 64


def test_numbers_as_words():
    assert [number(v) for v in (0.5, np.nan, np.inf, 1e-20)] == ["0.5", "undefined", "∞", "1e-20"]
