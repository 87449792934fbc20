"""Takes pictures of the page in every state that it can show, in a real browser, for a visual check.

  make pictures-of-states                        all of them, into build/states
  python -m tools.pages.page_states FOLDER [STATE...] [--width 390] [--dark] [--lang zh]

It needs Debian's chromium and chromium-driver, and the package selenium.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile

from tools.pages import example_states, page_pictures
from tools.pages.page_pictures import browser, missing
from tools.run_page import document

WIDTHS = (1400, 390)
_TALLEST = 12_000  # pixels


def shot(page: str, width: int, dark: bool) -> bytes:
    """The whole page as PNG."""
    with browser(width, 900, dark) as driver:
        driver.get("file://" + page)
        height = driver.execute_script("return document.documentElement.scrollHeight")
        return page_pictures.shot(driver, width, min(_TALLEST, height), captureBeyondViewport=True)


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("states", nargs="*", default=list(example_states.STATES))
    parser.add_argument("--width", type=int, action="append", help="1400 and 390, if none is given")
    parser.add_argument("--dark", action="store_true", help="only the dark ones")
    parser.add_argument("--light", action="store_true", help="only the light ones")
    parser.add_argument("--lang", choices=("en", "zh"), default="en")
    options = parser.parse_args(argv)
    os.environ["LAUNCH_LANG"] = options.lang
    if missing():
        return 1
    os.makedirs(options.folder, exist_ok=True)
    for state in options.states:
        with tempfile.TemporaryDirectory() as above:
            page = document.write(example_states.make(state, above), os.path.join(above, "page.html"))
            for width in options.width or WIDTHS:
                for dark in (False, True):
                    if (options.dark and not dark) or (options.light and dark):
                        continue
                    name = f"{state}-{width}-{'dark' if dark else 'light'}-{options.lang}.png"
                    with open(os.path.join(options.folder, name), "wb") as file:
                        file.write(shot(page, width, dark))
                    print(os.path.join(options.folder, name))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
