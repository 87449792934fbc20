"""The page of a run as people see it: in a real browser, wide and narrow, light and dark, in both languages."""

import io
import json
import os
import tempfile

import pytest
from browsed import WIDE, show
from suite.needs import needs, needs_packages

from hccl_tools.common import language
from tools.pages import example_run, page_pictures
from tools.run_page import document

pytestmark = [pytest.mark.thorough, needs(*page_pictures.PROGRAMS), needs_packages("selenium")]

EVIL = "<script>document.title = 'evil'</script><img src=http://127.0.0.1:9/x onerror=\"document.title = 'evil'\">"


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """{language: the page of a run in which somebody has put markup; "two": that of two runs}"""
    found = {}
    for name in ("en", "zh", "two"):
        above = tmp_path_factory.mktemp(name)
        folder = example_run.make(str(above))
        with open(f"{folder}/restart_1/rank_5.log", "a", encoding="utf-8") as file:
            file.write(f"{EVIL}\n")
        patch = pytest.MonkeyPatch()
        patch.setenv("LAUNCH_LANG", "zh" if name == "zh" else "en")
        language._catalogue.cache_clear()
        other = example_run.make(str(above / "other")) if name == "two" else None
        found[name] = document.write([folder, *([other] if other else [])], None)
        patch.undo()
        language._catalogue.cache_clear()
    return found


@pytest.fixture(scope="module")
def driver():
    """One browser for all pages, because its start takes longer than a page.  What a page forbids stays forbidden."""
    with page_pictures.browser(WIDE, 900) as opened:
        yield opened


def logs_of(driver):
    """(what the console says, the addresses that were asked for)"""
    events = [json.loads(entry["message"])["message"] for entry in driver.get_log("performance")]
    asked = [one["params"]["request"]["url"] for one in events if one["method"] == "Network.requestWillBeSent"]
    return [entry["message"] for entry in driver.get_log("browser")], asked


CHARTS = """
return [...document.querySelectorAll("[data-chart] canvas")].map((canvas) => {
  const box = canvas.getBoundingClientRect();
  const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
  return [box.width, box.height, pixels.some((value) => value)];
});
"""


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1400, 390])
@pytest.mark.parametrize("name", ["en", "zh", "two"])
def test_a_page_is_whole(driver, pages, name, width, dark):
    logs_of(driver)  # of the page before
    show(driver, pages[name], width, dark)
    said, asked = logs_of(driver)
    charts = driver.execute_script(CHARTS)
    scrolls = driver.execute_script("return document.documentElement.scrollWidth")
    back = driver.execute_script("return getComputedStyle(document.body).backgroundColor")
    title, words = driver.title, driver.execute_script("return document.body.innerText")
    assert said == []
    assert [url for url in asked if not url.startswith(("data:", "file://" + pages[name]))] == []
    assert len(charts) == 4 and all(wide > 250 and high > 100 and drawn for wide, high, drawn in charts)
    assert scrolls <= width
    assert (sum(map(int, back.strip("rgb()").split(","))) < 150) == dark
    assert title != "evil"
    assert ("曲线" in words) == (name == "zh")
    assert ("<script>document.title" in words) == (name != "two")


def test_the_browser_leaves_nothing_behind(monkeypatch):
    with tempfile.TemporaryDirectory() as here:  # the path of a socket in it must be short
        monkeypatch.setenv("TMPDIR", here)
        monkeypatch.setattr(tempfile, "tempdir", here)
        with page_pictures.browser(390, 300) as driver:
            driver.get("data:,")
        assert os.listdir(here) == []


def test_the_picture_in_the_readme_is_of_this_page(tmp_path):
    pil = pytest.importorskip("PIL.Image", reason="needs Pillow")
    now = pil.open(io.BytesIO(page_pictures.taken(str(tmp_path)))).convert("L")
    there = pil.open(page_pictures.PICTURE).convert("L")
    assert there.size == now.size, "run: make pictures-of-pages"
    small = [image.resize((22, 32)).tobytes() for image in (now, there)]
    differ = sum(abs(one - other) > 40 for one, other in zip(*small))
    assert differ < 40, "run: make pictures-of-pages"  # fonts may differ
    assert os.path.getsize(page_pictures.PICTURE) < 200_000
