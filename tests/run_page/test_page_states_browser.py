"""The page in every state that it can show, in a real browser: whole on a phone and on paper, readable by everybody.

One browser for all of it, because its start takes longer than a page.
"""

import base64
import re

import pytest
from browsed import BROKEN, NARROW, PAPER, PHONE, WIDE, WIDER, asked_for, axe_finds, axe_script, driving, show
from suite.needs import needs, needs_packages

from tools.pages import example_states, page_pictures
from tools.run_page import document, named

pytestmark = [
    *(pytest.mark.thorough, needs(*page_pictures.PROGRAMS), needs_packages("selenium", "axe_core_python")),
    pytest.mark.xdist_group("page-states"),
]

MATTER = {"failed": [5], "hang": [6], "restarted": [5], "straggler": [41, 7], "many": [333, 700]}
LARGE = ("straggler", "many")  # axe takes a second for each thousand boxes
USUAL = ("good", "failed", "hang", "restarted")  # runs of eight ranks
# [rank, the section, the colour] of each spot beside the name of a rank, and of each line of a chart.
COLOURS = """
const rgb = (colour) => { const box = document.createElement("i"); box.style.color = colour; document.body.append(box);
                          const found = getComputedStyle(box).color; box.remove(); return found; };
const spots = [...document.querySelectorAll(".chip")].map((spot) => {
  const name = /^\\s*rank (\\d+)/i.exec(spot.nextSibling?.textContent ?? "");
  return name && [name[1], spot.closest("[id]").id, getComputedStyle(spot).backgroundColor];
});
const lines = [...document.querySelectorAll("[data-drawn]")].flatMap((chart) =>
  Object.entries(JSON.parse(chart.dataset.drawn)).map(([name, colour]) => {
    const rank = /^rank (\\d+)/.exec(name);
    return rank && [rank[1], "chart", rgb(colour)];
  }));
return [...spots, ...lines].filter(Boolean);
"""


@pytest.fixture(scope="module")
def driver():
    with driving() as opened:
        yield opened


@pytest.fixture(scope="module")
def axe():
    return axe_script()


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """page(STATE): the page's path."""
    made = {}

    def make(state):
        if state not in made:
            above = tmp_path_factory.mktemp(state)
            made[state] = document.write(example_states.make(state, str(above)), str(above / "page.html"))
        return made[state]

    return make


@pytest.mark.parametrize("state", example_states.STATES)
def test_every_state_is_whole_and_readable_by_everybody(driver, page, axe, state):
    asked_for(driver)
    ways = [(WIDE, False), (WIDE, True), (PHONE, False), (PHONE, True)]
    for width, dark in ways[::3] if state in LARGE else ways:
        show(driver, page(state), width, dark)
        assert axe_finds(driver, axe, colours=dark) == [], (width, dark)
        if width == PHONE:
            assert driver.execute_script("return document.documentElement.scrollWidth") <= PHONE
            assert driver.execute_script(WIDER) == []
            assert driver.execute_script(BROKEN) == [] == driver.execute_script(NARROW)
    assert [entry["message"] for entry in driver.get_log("browser")] == []
    assert [url for url in asked_for(driver) if not url.startswith(("data:", f"file://{page(state)}"))] == []


@pytest.mark.parametrize("state", MATTER)
def test_the_ranks_that_matter_are_in_the_time_line(driver, page, state):
    show(driver, page(state))
    words = driver.execute_script("return document.querySelector('#times').innerText")
    assert [rank for rank in MATTER[state] if not re.search(rf"{named.label(rank)}\b", words)] == []


@pytest.mark.parametrize(("state", "parts"), [
    ("failed", {"outcome", "times", "curves", "chart", "placement"}),
    ("straggler", {"times", "curves", "chart", "placement"}),
    ("hang", {"stacks", "times", "placement"}),
])  # fmt: skip
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_a_rank_has_one_colour_on_the_whole_page(driver, page, state, parts, dark):
    show(driver, page(state), dark=dark)
    found = driver.execute_script(COLOURS)
    ranks = {str(rank) for rank in MATTER[state]}
    colours = {rank: {colour for one, _, colour in found if one == rank} for rank in ranks}
    assert all(len(each) == 1 for each in colours.values()) and len(set(map(str, colours.values()))) == len(ranks)
    assert parts <= {part for one, part, _ in found if one in ranks}


@pytest.mark.parametrize("state", USUAL)
def test_a_usual_run_takes_two_pages_of_paper(driver, page, state):
    show(driver, page(state), dark=True)
    pdf = driver.execute_cdp_cmd("Page.printToPDF", {"preferCSSPageSize": True, "printBackground": True})["data"]
    pages = len(re.findall(rb"/Type\s*/Page\b", base64.b64decode(pdf)))
    assert 1 <= pages <= 2


def test_paper_is_light_and_has_nothing_to_click(driver, page):
    show(driver, page("failed"), dark=True, media="print")
    colours = driver.execute_script("""
      return [...document.querySelectorAll("body, h1, h2, p, td, pre")].filter((one) => one.checkVisibility())
        .map((one) => getComputedStyle(one).color.match(/[0-9]+/g).slice(0, 3).map(Number));""")
    assert len(colours) > 5 and all(sum(colour) < 3 * 128 for colour in colours)
    back = driver.execute_script("return getComputedStyle(document.body).backgroundColor")
    assert back == "rgb(255, 255, 255)"
    seen = driver.execute_script("""
      return [...document.querySelectorAll("button, summary, .hint, details > :not(summary)")]
        .filter((one) => one.checkVisibility()).map((one) => one.outerHTML.slice(0, 100));""")
    assert seen == []


@pytest.mark.parametrize("state", ["compared", "restarted"])
def test_paper_cuts_nothing(driver, page, state):
    show(driver, page(state), PAPER, media="print")
    assert driver.execute_script("return document.documentElement.scrollWidth") <= PAPER
    assert driver.execute_script(WIDER) == [] == driver.execute_script(BROKEN)


def test_a_box_that_scrolls_is_reached_by_keyboard(driver, page):
    show(driver, page("failed"))
    found = driver.execute_script("""
      return [...document.querySelectorAll("main .wide, main pre")].map((one) =>
        [one.tabIndex === 0, one.scrollHeight > one.clientHeight + 1 || one.scrollWidth > one.clientWidth + 1]);""")
    assert any(scrolls for _, scrolls in found) and all(reached == scrolls for reached, scrolls in found)


def test_the_checks_see_what_is_wrong(driver, page, axe):
    add = """
      const bad = document.createElement("section");
      bad.innerHTML = "<h2>Bad</h2>" + "<p>words of a text</p>".repeat(9);  // of some, axe sees no background
      for (const one of bad.querySelectorAll("p")) one.style.cssText = arguments[0];
      bad.append(new Image());
      document.querySelector("main").append(bad);"""
    show(driver, page("good"), PHONE)
    driver.execute_script(add, "color: #ddd")
    assert {"color-contrast", "image-alt"} == {one[0] for one in axe_finds(driver, axe)}
    assert [one[0] for one in axe_finds(driver, axe, colours=True)] == ["color-contrast"]
    driver.execute_script(add, "width: 20px; overflow-wrap: anywhere")
    assert "words" in driver.execute_script(BROKEN)
    assert driver.execute_script(WIDER) == []
    driver.execute_script(add, "width: 600px")
    assert driver.execute_script("return document.documentElement.scrollWidth") > PHONE
    assert any("600px" in one for one in driver.execute_script(WIDER))
