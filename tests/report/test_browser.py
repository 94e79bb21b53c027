"""The page in a real browser: what a reader sees on a desk, on a phone and on paper."""

import base64

import numpy as np
import pytest

from tests.report import browser, sick

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(browser.found() is None, reason="no Chromium here: apt-get install chromium"),
]

SLIDE = "(() => {{ const s = document.getElementById('depth'); s.value = {}; s.dispatchEvent(new Event('input')); }})()"
CHOOSE = (
    "(() => {{ const s = document.getElementById('which'); s.value = {}; s.dispatchEvent(new Event('change')); }})()"
)
PIXELS = "Array.from(document.getElementById('map').getContext('2d').getImageData(0, 0, {0}, {0}).data)"

LEGENDS = "Array.from(document.querySelectorAll('.legend .mark')).map(m => m.getClientRects().length > 0)"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    text, found = sick.text()
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(text, encoding="utf-8")
    return path, found


@pytest.fixture(scope="module")
def chromium(tmp_path_factory):
    with browser.Browser(tmp_path_factory.mktemp("profile")) as one:
        yield one


@pytest.fixture
def desk(chromium, made):
    chromium.open(made[0])
    return chromium


def pixels(page):
    return np.array(page.run(PIXELS.format(sick.LENGTH))).reshape(sick.LENGTH, sick.LENGTH, 4)


def test_it_loads_alone_and_without_complaint(desk, made):
    requests = [e["params"]["request"]["url"] for e in desk.events if e["method"] == "Network.requestWillBeSent"]
    assert requests == [made[0].as_uri()]
    complaints = [e for e in desk.events if e["method"] in ("Runtime.exceptionThrown", "Log.entryAdded")]
    assert not complaints


def test_a_name_is_text_and_never_markup(desk):
    assert desk.run("document.querySelector('h1').textContent") == sick.NAME
    assert desk.run("document.scripts.length") == 2


def test_the_slider_shows_the_kernel_of_its_depth(desk, made):
    evolution = made[1].before.evolution
    shown = []
    for depth in range(sick.DEPTH + 1):
        desk.run(SLIDE.format(depth))
        assert desk.run("document.getElementById('chosen').textContent") == str(depth)
        written = desk.run("document.querySelector('#readout dd').textContent")
        assert float(written) == pytest.approx(evolution.mean_correlation[depth], abs=1e-4)
        shown.append(pixels(desk))
    for depth, image in enumerate(shown):
        kernel = evolution.kernel(depth)
        roots = np.sqrt(np.diagonal(kernel))
        correlation = kernel / np.outer(roots, roots)
        # From white at 0 to dark blue at 1 every channel falls: darker is more correlated.
        order = np.argsort(correlation, axis=None)
        assert (np.diff(image[..., 0].ravel()[order].astype(int)) <= 0).all()
        assert (image[np.arange(sick.LENGTH), np.arange(sick.LENGTH), :3] == [8, 48, 107]).all()
    assert not np.array_equal(shown[0], shown[-1])


def test_the_slider_moves_the_marks_of_all_charts(desk):
    marks = "Array.from(document.querySelectorAll('.chart .cursor'))"
    place = f"{marks}.map(c => [c.getAttribute('transform'), c.style.visibility])"
    desk.run(SLIDE.format(1))
    first = desk.run(place)
    desk.run(SLIDE.format(sick.DEPTH))
    last = desk.run(place)
    assert len(first) >= 4
    assert desk.run(LEGENDS) == [True] * len(first)
    assert all(a[0] != b[0] and b[1] == "visible" for a, b in zip(first, last, strict=True))


def test_another_network_can_be_looked_at(desk, made):
    names = desk.run("Array.from(document.getElementById('which').options).map(o => o.textContent)")
    assert names == ["as it is", *(attempt.name for attempt in made[1].suggestions)]
    assert len(names) >= 2
    desk.run(SLIDE.format(sick.DEPTH))
    before = pixels(desk)
    desk.run(CHOOSE.format(1))
    assert not np.array_equal(before, pixels(desk))


@pytest.mark.parametrize("width", [320, 390])
def test_nothing_is_wider_than_a_phone(chromium, made, width):
    chromium.open(made[0], width, 844, mobile=True)
    assert chromium.run("document.scrollingElement.scrollWidth") <= width
    smallest = chromium.run(
        "Math.min(...Array.from(document.querySelectorAll('.chart text'))"
        ".map(t => 12 * t.ownerSVGElement.getBoundingClientRect().width / 400))"
    )
    assert smallest >= (9 if width >= 390 else 7.5)  # pixels


def test_no_two_labels_of_a_chart_overlap(desk):
    overlaps = desk.run(
        """(() => {
          let found = [];
          document.querySelectorAll('.chart > svg').forEach(svg => {
            const boxes = Array.from(svg.querySelectorAll('text')).map(t => [t.textContent, t.getBoundingClientRect()]);
            boxes.forEach(([a, p], n) => boxes.slice(n + 1).forEach(([b, q]) => {
              if (p.left < q.right && q.left < p.right && p.top < q.bottom && q.top < p.bottom) { found.push([a, b]); }
            }));
          });
          return found;
        })()"""
    )
    assert overlaps == []


def test_on_paper_the_slider_gives_way_to_pictures_and_everything_is_open(desk):
    desk.order("Emulation.setEmulatedMedia", media="print")
    try:
        assert desk.run("getComputedStyle(document.getElementById('explorer')).display") == "none"
        assert desk.run("document.querySelectorAll('.strip canvas').length") >= 5
        desk.run("window.dispatchEvent(new Event('beforeprint'))")
        assert desk.run("Array.from(document.querySelectorAll('details')).every(d => d.open)")
        desk.run("window.dispatchEvent(new Event('afterprint'))")
        assert desk.run("Array.from(document.querySelectorAll('details')).every(d => !d.open)")
        paper = base64.b64decode(desk.order("Page.printToPDF", printBackground=True)["data"])
    finally:
        desk.order("Emulation.setEmulatedMedia", media="")
    assert paper.startswith(b"%PDF")


def test_without_scripts_the_words_and_charts_are_there(chromium, made):
    chromium.order("Emulation.setScriptExecutionDisabled", value=True)
    try:
        chromium.open(made[0])
    finally:
        chromium.order("Emulation.setScriptExecutionDisabled", value=False)
    text = chromium.run("document.body.innerText")
    assert "Verdict" in text
    assert "need the page" in text
    assert not any(chromium.run(LEGENDS))
    assert chromium.run("document.querySelectorAll('.chart > svg').length") >= 4
