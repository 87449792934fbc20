"""The site of `make docs` in a browser: on a phone, in light and dark, by keyboard and for a screen reader."""

import json
import os
import shutil

import pytest
import sites
from run_page.browsed import PHONE, WIDE, show
from suite.needs import needs, needs_packages

from tools.pages import page_pictures

pytestmark = pytest.mark.thorough

# what is wider than the screen, and in nothing that scrolls
TOO_WIDE = """
const width = document.documentElement.clientWidth, scrolls = (part) => {
  for (let above = part.parentElement; above; above = above.parentElement)
    if (["auto", "scroll"].includes(getComputedStyle(above).overflowX)) return true;
  return false;
};
const wide = [...document.querySelectorAll("article *")].filter((part) => {
  const box = part.getBoundingClientRect();
  return box.width && box.right > width + 1 && !scrolls(part);
});
return [width, document.documentElement.scrollWidth, ...wide.slice(0, 3).map((part) => part.outerHTML.slice(0, 80))];
"""


@pytest.fixture(scope="module")
def driver():
    """One browser for all pages, because its start takes longer than a page."""
    with page_pictures.browser(WIDE, 900) as opened:
        opened.set_script_timeout(120)
        yield opened


def seen_on_a_phone(driver, path):
    """What is wrong with a page on a screen of 390 pixels: what is too wide, and what the browser says."""
    driver.get_log("browser")  # of the page before
    show(driver, str(path), PHONE)
    width, whole, *wide = driver.execute_script(TOO_WIDE)
    assert width == PHONE
    return [*wide, *["the page scrolls"] * (whole > width), *(entry["message"] for entry in driver.get_log("browser"))]


@pytest.fixture
def without_index(built, tmp_path):
    """The site with a search that finds nothing: every page reads the index, which takes half of the page's time."""
    shutil.copytree(built / "html", tmp_path / "html", copy_function=os.link)
    shutil.copytree(built / "pages", tmp_path / "pages", copy_function=os.link)
    for path in tmp_path.rglob("search_index.js"):
        index = json.loads(path.read_text(encoding="utf-8").partition("=")[2])
        path.unlink()  # a link
        path.write_text(f"var __index = {json.dumps({**index, 'docs': []})}", encoding="utf-8")
    return tmp_path


@needs(*page_pictures.PROGRAMS)
@needs_packages("selenium")
def test_no_page_is_wider_than_a_phone_and_none_has_an_error(driver, without_index):
    addresses = sites.addresses(without_index)
    pages = {name: path for name, path in addresses.items() if "/commands/" not in name}
    pages |= {name: path for name, path in addresses.items() if "watch.py" in name or "ascend4p" in name}
    faulty = {name: seen_on_a_phone(driver, path) for name, path in pages.items()}
    assert {name: found for name, found in faulty.items() if found} == {} and len(faulty) > 80


@needs(*page_pictures.PROGRAMS)
@needs_packages("selenium")
@pytest.mark.parametrize("part", [
    "<img src=nowhere.png>",
    "<p style='width: 500px'>long</p>",
    "<p style='width: 500px; overflow: auto'>long</p>",
])  # fmt: skip
def test_what_is_too_wide_for_a_phone_is_found(driver, tmp_path, part):
    (tmp_path / "page.html").write_text(f"<meta name=viewport content='width=device-width'><article>{part}</article>")
    assert seen_on_a_phone(driver, tmp_path / "page.html")


@needs(*page_pictures.PROGRAMS)
@needs_packages("selenium", "axe_core_python")
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_everybody_can_read_and_reach_all_that_is_on_a_page(driver, built, dark):
    """The rules of WCAG 2, A and AA, that a program can check: contrast, names, what the keyboard reaches."""
    from axe_core_python.selenium import Axe

    options = {"runOnly": ["wcag2a", "wcag2aa", "wcag21aa"], "resultTypes": ["violations"]}
    found = {}
    for width, *names in ((PHONE, "README_CN.md", "docs/compared.md"), (WIDE, "README.md", "docs/zh/watch.md")):
        for name in names:
            show(driver, str(sites.addresses(built)[name]), width, dark)
            results = Axe().run(driver, options=options)
            assert len(results["passes"]) > 10
            faults = [(fault["id"], fault["nodes"][0]["html"]) for fault in results["violations"]]
            found.update({name: faults} if faults else {})
    assert found == {}
