"""The page of a check in a real browser: whole on a phone, readable by everybody, and it asks for nothing."""

import example_checks
import pytest
from run_page.browsed import BROKEN, NARROW, PHONE, WIDE, WIDER, asked_for, axe_finds, axe_script, driving, show
from suite.needs import needs, needs_packages

from tools.pages import page_pictures
from tools.preflight import page

pytestmark = [
    *(pytest.mark.thorough, needs(*page_pictures.PROGRAMS), needs_packages("selenium", "axe_core_python")),
    pytest.mark.xdist_group("page-states"),
]


@pytest.fixture(scope="module")
def driver():
    with driving() as opened:
        yield opened


@pytest.mark.parametrize("state", ["good", "differing", "tried", "all_fail"])
def test_the_page_is_whole_and_readable_by_everybody(driver, tmp_path, state):
    path = tmp_path / "page.html"
    found = getattr(example_checks, state)()
    path.write_text(page.html_of(found, example_checks.MADE), encoding="utf-8")
    asked_for(driver)
    for width in (WIDE, PHONE):
        for dark in (False, True):
            show(driver, str(path), width, dark)
            assert axe_finds(driver, axe_script(), colours=dark) == [], (width, dark)
            for details in driver.find_elements("css selector", "details"):
                driver.execute_script("arguments[0].open = true", details)
            assert driver.execute_script("return document.documentElement.scrollWidth") <= width
            assert driver.execute_script(WIDER) == [], (width, dark)
            if width == PHONE:
                assert driver.execute_script(BROKEN) == [] == driver.execute_script(NARROW), dark
    assert [entry["message"] for entry in driver.get_log("browser")] == []
    assert [url for url in asked_for(driver) if not url.startswith(("data:", f"file://{path}"))] == []
    fills = driver.execute_script("""
      return [...document.querySelectorAll(".hosts .cell")].map((one) => getComputedStyle(one).backgroundColor);""")
    assert (len(fills), len(set(fills))) == {
        "good": (64, 1),
        "differing": (64, 5),
        "tried": (32, 3),
        "all_fail": (4, 1),
    }[state]
