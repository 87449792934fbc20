"""The curves of a run's page in a real browser: colours, names, the legend, the axis, paper."""

import json
import re
from pathlib import Path

import pytest
from browsed import WIDE, show
from suite.needs import needs, needs_packages

from tools.pages import example_states, page_pictures
from tools.run_page import document

pytestmark = [pytest.mark.thorough, needs(*page_pictures.PROGRAMS), needs_packages("selenium")]


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """page(state): the path of its page."""
    known = {}

    def of(state):
        if state not in known:
            folders = example_states.make("good" if state == "nan" else state, str(tmp_path_factory.mktemp(state)))
            if state == "nan":
                log = Path(folders[0], "rank_3.log")
                log.write_text(re.sub(r"(step: 60, loss is )\S+", r"\1nan", log.read_text()))
            known[state] = document.write(folders, None)
        return known[state]

    return of


@pytest.fixture(scope="module")
def driver():
    """One browser for all tests, because its start takes longer than a page."""
    with page_pictures.browser(WIDE, 900) as opened:
        yield opened


@pytest.fixture
def opened(driver, page):
    """opened(state, width, dark): the driver with its page, which may say nothing on the console."""

    def go(state, width=WIDE, dark=False):
        driver.execute_cdp_cmd("Input.dispatchMouseEvent", {"type": "mouseMoved", "x": 0, "y": 0})  # as if never moved
        show(driver, page(state), width, dark)
        return driver

    driver.get_log("browser")  # of the test before
    yield go
    said = [entry["message"] for entry in driver.get_log("browser")]
    assert [text for text in said if "willReadFrequently" not in text] == []  # the tests read canvases


def drawn(driver):
    """Of each chart: {the name of a line: its colour}."""
    script = "return [...document.querySelectorAll('[data-chart]')].map((one) => one.dataset.drawn)"
    return [json.loads(text) for text in driver.execute_script(script)]


def pictures(driver):
    return driver.execute_script(
        "return [...document.querySelectorAll('#curves canvas')].map((one) => one.toDataURL())"
    )


def keys(driver):
    return driver.find_elements("css selector", ".legend [data-key]")


def chips(driver):
    """{the key of a line: the colour of its chip in the legend}"""
    script = (
        "return Object.fromEntries([...document.querySelectorAll('.legend [data-key]')]"
        ".map((one) => [one.dataset.key, getComputedStyle(one.firstChild).backgroundColor]))"
    )
    return driver.execute_script(script)


def readouts(driver):
    return [one.text for one in driver.find_elements("css selector", "#curves .at")]


PIXELS = """
const [number, text, left, right, low] = arguments;
const chart = document.querySelector(`[data-chart="${number}"]`);
const canvas = chart.querySelector("canvas");
const [box, over] = [canvas.getBoundingClientRect(), chart.querySelector(".u-over").getBoundingClientRect()];
const wanted = text.match(/\\w\\w/g).map((digits) => parseInt(digits, 16));
const [from, to] = [left, right].map((side) => Math.round(side * over.width + over.left - box.left));
const above = Math.round(over.top - box.top + low * over.height);
const area = canvas.getContext("2d").getImageData(from, above, to - from, Math.round(over.bottom - box.top) - above);
const columns = new Array(area.width).fill(0);
for (let at = 0; at < area.data.length; at += 4) {
  const far = Math.max(...wanted.map((value, part) => Math.abs(value - area.data[at + part])));
  if (area.data[at + 3] > 200 && far < 24) columns[(at / 4) % area.width] += 1;
}
return columns;
"""


def pixels(driver, chart, colour, left, right, below=0.0):
    """How many of this colour each column has; the sides are parts of the width of what is drawn."""
    return driver.execute_script(PIXELS, chart, colour, left, right, below)


def rgb(text):
    return f"rgb({int(text[1:3], 16)}, {int(text[3:5], 16)}, {int(text[5:7], 16)})"


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_a_rank_has_one_colour_in_all_charts_and_in_the_legend(opened, dark):
    driver = opened("straggler", dark=dark)
    found = drawn(driver)
    legend = chips(driver)
    assert "rank 7" in found[0] and any("rank 41" in each for each in found)
    for name, key in (("rank 7", "rank-7"), ("rank 41", "rank-41"), ("median", "median")):
        colours = {rgb(each[name]) for each in found if name in each}
        assert colours == {legend[key]}, name
    assert len({legend["rank-7"], legend["rank-41"], legend["median"]}) == 3


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_a_rank_that_is_apart_has_its_name_at_its_lines_end(opened, dark):
    driver = opened("straggler", dark=dark)
    found = drawn(driver)
    for chart, name in ((0, "rank 7"), (0, "median"), (3, "rank 41")):
        beside = pixels(driver, chart, found[chart][name], 1.02, 1.11)
        assert sum(beside) > 20, (chart, name)
    assert sum(pixels(driver, 2, found[0]["rank 7"], 0, 1.11)) == 0


def test_a_restart_is_a_line_in_each_chart(opened):
    driver = opened("restarted")
    soft = driver.execute_script("return getComputedStyle(document.documentElement).getPropertyValue('--soft').trim()")
    for chart in range(4):
        columns = pixels(driver, chart, soft, 0, 1)
        at = max(range(len(columns)), key=lambda place: columns[place])
        assert columns[at] > 80 and abs(at / len(columns) - 180 / 398) < 0.01, chart


def test_a_cross_marks_a_value_that_is_no_number(opened):
    driver = opened("nan")
    colour = drawn(driver)[0]["rank 3"]
    columns = pixels(driver, 0, colour, 0.2, 0.8, 0.9)
    assert sum(columns) > 10 and sum(columns[: len(columns) // 3]) == 0  # step 60 of 120 is in the middle


def test_charts_follow_the_width_of_the_window(opened):
    driver = opened("straggler")
    size = {"width": 390, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    driver.execute_async_script("requestAnimationFrame(() => requestAnimationFrame(arguments[0]))")
    assert driver.execute_script("return document.documentElement.scrollWidth") <= 390


def test_another_mode_has_other_colours_at_once(opened):
    driver = opened("straggler")
    before = drawn(driver)
    scheme = {"name": "prefers-color-scheme", "value": "dark"}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
    driver.execute_async_script("requestAnimationFrame(() => requestAnimationFrame(arguments[0]))")
    assert drawn(driver) != before


@pytest.mark.parametrize("state", ["straggler", "restarted", "compared"])
def test_the_charts_share_their_edges_and_do_not_overflow_a_phone(opened, state):
    driver = opened(state, 390)
    script = (
        "return [...document.querySelectorAll('#curves .u-over')]"
        ".map((one) => [one.getBoundingClientRect().left, one.getBoundingClientRect().right])"
    )
    edges = driver.execute_script(script)
    assert len(edges) > 2 and all(edge == edges[0] for edge in edges)
    assert driver.execute_script("return document.documentElement.scrollWidth") <= 390


def test_the_legend_hides_a_rank_in_all_charts_with_the_keyboard_too(opened):
    driver = opened("straggler")
    before = pictures(driver)
    button = next(one for one in keys(driver) if one.get_attribute("data-key") == "rank-41")
    assert "rank 41" in button.text and button.get_attribute("aria-pressed") == "true"
    button.send_keys(" ")
    hidden = pictures(driver)
    assert button.get_attribute("aria-pressed") == "false" and hidden != before
    assert not any("rank 41" in text for text in readouts(driver))
    for one in keys(driver)[:2]:  # the median and the band
        one.click()
    assert [one == other for one, other in zip(hidden, pictures(driver))] == [False, True, False, False]
    for one in [button, *keys(driver)[:2]]:
        one.click()
    assert pictures(driver) == before


def test_a_zoom_is_of_all_charts_and_a_double_click_ends_it(opened):
    from selenium.webdriver import ActionChains

    driver = opened("straggler")
    over = driver.find_element("css selector", "[data-chart='0'] .u-over")
    driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", over)
    away = driver.find_element("css selector", "#curves h2")
    before = pictures(driver)
    ActionChains(driver).move_to_element_with_offset(over, -100, 0).click_and_hold().move_by_offset(
        150, 0
    ).release().perform()
    zoomed = pictures(driver)
    assert all(one != other for one, other in zip(before, zoomed))
    keys(driver)[0].click()
    keys(driver)[0].click()
    assert pictures(driver) == zoomed  # a name that is hidden and shown does not end it
    over = driver.find_element("css selector", "[data-chart='0'] .u-over")
    driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", over)
    ActionChains(driver).double_click(over).move_to_element(away).perform()
    assert pictures(driver) == before


def test_the_pointer_reads_all_charts_with_units(opened):
    from selenium.webdriver import ActionChains

    driver = opened("straggler")
    over = driver.find_element("css selector", "[data-chart='3'] .u-over")
    driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", over)
    last = readouts(driver)
    ActionChains(driver).move_to_element_with_offset(over, -80, 0).perform()
    there = readouts(driver)
    assert all(one != other for one, other in zip(last, there))
    assert all("step 399" in text for text in last)
    assert "rank 41: 35" in there[3] and " ms" in there[3] and "%" in there[1]


def test_runs_are_drawn_by_step_or_by_time(opened):
    driver = opened("compared")
    before, by_step = pictures(driver), readouts(driver)
    step, time = driver.find_elements("css selector", ".by button")
    time.click()
    assert [one.get_attribute("aria-pressed") for one in (step, time)] == ["false", "true"]
    assert all(one != other for one, other in zip(before, pictures(driver)))
    assert "step 399" in by_step[0] and "time 39" in readouts(driver)[0]
    step.click()
    assert pictures(driver) == before


def test_paper_has_narrow_light_charts_and_the_screen_its_own_again(opened):
    driver = opened("failed", dark=True)
    driver.execute_script(
        "addEventListener('beforeprint', () => {"
        "window.printed = [...document.querySelectorAll('#curves canvas')].map((one) => one.clientWidth);"
        "window.colours = document.querySelector('[data-chart]').dataset.drawn; })"
    )
    before = pictures(driver)
    screen = drawn(driver)
    driver.execute_cdp_cmd("Page.printToPDF", {})
    assert set(driver.execute_script("return window.printed")) == {310}
    assert json.loads(driver.execute_script("return window.colours"))["median"] == "#3a4452"
    assert drawn(driver) == screen and pictures(driver) == before


def test_a_screen_reader_gets_a_sentence_for_each_chart(opened):
    driver = opened("straggler")
    charts = driver.find_elements("css selector", "#curves [role=img]")
    names = [chart.accessible_name for chart in charts]
    assert len(names) == 4 and names[3].startswith(
        "Time of a step that waits for data, steps 1 to 399; rank 41: from 35"
    )
