"""What tests of a page ask a real browser: whether everybody can read it, and whether it is whole on a phone."""

import contextlib
import importlib.util
import json
import os

from tools.pages import page_pictures

WIDE, PHONE, PAPER = 1400, 390, 703  # PAPER: A4 between the margins of print.css
EVERY_RULE = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"]
OF_COLOURS = {"type": "rule", "values": ["color-contrast", "link-in-text-block"]}  # only these look at colours
AXE = """
const [rules, done] = arguments;
axe.run(document, {runOnly: rules, resultTypes: ["violations"]})
  .then((found) => done(found.violations.map((one) => [one.id, one.help, one.nodes.length,
    one.nodes.slice(0, 3).map((node) => node.html.slice(0, 160) + " " + node.failureSummary.slice(0, 300))])));
"""
# What is wider than the window and cannot be scrolled in a box of its own, by its outermost element.
WIDER = """
const wide = document.documentElement.clientWidth;
const boxed = (element) => {
  for (let above = element.parentElement; above; above = above.parentElement)
    if (["auto", "scroll", "hidden"].includes(getComputedStyle(above).overflowX)) return true;
  return false;
};
return [...document.querySelectorAll("main *, footer")]
  .filter((one) => { const box = one.getBoundingClientRect();
                     return box.width && box.right > wide + 1 && !boxed(one); })
  .slice(0, 5).map((one) => one.outerHTML.slice(0, 160));
"""
# Words of up to twelve letters that go over two lines, because their box is too narrow.
BROKEN = """
const found = [];
const walker = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const node = walker.currentNode;
  if (!node.parentElement.checkVisibility() || node.parentElement.closest("script, pre, svg")) continue;
  for (const word of node.textContent.matchAll(/(?<![\\w./-])\\w{2,12}(?![\\w./-])/g)) {
    const range = document.createRange();
    range.setStart(node, word.index);
    range.setEnd(node, word.index + word[0].length);
    if (new Set([...range.getClientRects()].map((box) => Math.round(box.top))).size > 1) found.push(word[0]);
  }
}
return found.slice(0, 5);
"""
# Cells of cards that leave a part of the card's width free, and so wrap their words too early.
NARROW = """
return [...document.querySelectorAll(".cards td")].filter((one) => one.checkVisibility()
  && one.getBoundingClientRect().width < 0.8 * one.closest("table").clientWidth)
  .map((one) => one.outerHTML.slice(0, 100));
"""


@contextlib.contextmanager
def driving():
    """A browser in which axe can look at pages."""
    with page_pictures.browser(WIDE, 900) as opened:
        opened.execute_cdp_cmd("Page.setBypassCSP", {"enabled": True})  # axe is not one of the page's scripts
        yield opened


def axe_script():
    """The program that looks at a page."""
    (folder,) = importlib.util.find_spec("axe_core_python").submodule_search_locations
    with open(os.path.join(folder, "axe.min.js"), encoding="utf-8") as file:
        return file.read()


def show(driver, path, width=WIDE, dark=False, media=""):
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width == PHONE}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media, "features": [scheme]})
    driver.get("file://" + path)


def axe_finds(driver, axe, colours=False):
    """What axe finds wrong with the page, or only with its colours: [rule, what it asks for, how often, where]."""
    driver.execute_script(axe)
    return driver.execute_async_script(AXE, OF_COLOURS if colours else EVERY_RULE)


def asked_for(driver):
    """The addresses that were asked for."""
    events = [json.loads(entry["message"])["message"] for entry in driver.get_log("performance")]
    return [one["params"]["request"]["url"] for one in events if one["method"] == "Network.requestWillBeSent"]
