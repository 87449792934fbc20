"""The site of `make docs` in a browser: on a phone, in light and dark, by keyboard and for a screen reader."""

import pytest
import sites
from needs import needs, needs_packages

from tools.pages import page_pictures

pytestmark = pytest.mark.thorough

# what is wider than the screen, and in nothing that scrolls
WIDE = """
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


def seen_on_a_phone(driver, address):
    """What is wrong with a page on a screen of 390 pixels: what is too wide, and what the browser says."""
    driver.get(address)
    width, whole, *wide = driver.execute_script(WIDE)
    assert width == 390
    return [*wide, *["the page scrolls"] * (whole > width), *(entry["message"] for entry in driver.get_log("browser"))]


@needs(*page_pictures.PROGRAMS)
@needs_packages("selenium")
def test_no_page_is_wider_than_a_phone_and_none_has_an_error(built):
    pages = {name: path for name, path in sites.addresses(built).items() if "/commands/" not in name}
    pages |= {name: path for name, path in sites.addresses(built).items() if "watch.py" in name or "ascend4p" in name}
    with page_pictures.browser(390, 844) as driver:
        faulty = {name: seen_on_a_phone(driver, f"file://{path}") for name, path in pages.items()}
    assert {name: found for name, found in faulty.items() if found} == {} and len(faulty) > 80


@needs(*page_pictures.PROGRAMS)
@needs_packages("selenium")
@pytest.mark.parametrize("part", [
    "<img src=nowhere.png>",
    "<p style='width: 500px'>long</p>",
    "<p style='width: 500px; overflow: auto'>long</p>",
])  # fmt: skip
def test_what_is_too_wide_for_a_phone_is_found(tmp_path, part):
    (tmp_path / "page.html").write_text(f"<meta name=viewport content='width=device-width'><article>{part}</article>")
    with page_pictures.browser(390, 844) as driver:
        assert seen_on_a_phone(driver, f"file://{tmp_path}/page.html")


@needs(*page_pictures.PROGRAMS)
@needs_packages("selenium", "axe_core_python")
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_everybody_can_read_and_reach_all_that_is_on_a_page(built, dark):
    """The rules of WCAG 2, A and AA, that a program can check: contrast, names, what the keyboard reaches."""
    from axe_core_python.selenium import Axe

    options = {"runOnly": ["wcag2a", "wcag2aa", "wcag21aa"], "resultTypes": ["violations"]}
    found = {}
    for width, *names in ((390, "README_CN.md", "docs/compared.md"), (1400, "README.md", "docs/zh/watch.md")):
        with page_pictures.browser(width, 900, dark) as driver:
            driver.set_script_timeout(120)
            for name in names:
                driver.get(f"file://{sites.addresses(built)[name]}")
                results = Axe().run(driver, options=options)
                assert len(results["passes"]) > 10
                faults = [(fault["id"], fault["nodes"][0]["html"]) for fault in results["violations"]]
                found.update({name: faults} if faults else {})
    assert found == {}
