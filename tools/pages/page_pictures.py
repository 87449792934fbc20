"""Takes the picture of a run's page for the README in a real browser.

  make pictures-of-pages

It needs Debian's chromium and chromium-driver, and the package selenium.
"""

from __future__ import annotations

import base64
import contextlib
import io
import os
import shutil
import sys
import tempfile

from hccl_tools.common import project
from tools.pages import example_run
from tools.run_page import document

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

PICTURE = project.path("docs", "pictures", "report.png")
PROGRAMS = ("chromium", "chromedriver")
_WIDTH, _HEIGHT = 1100, 2000
_COLOURS = 192  # so few make the picture small


@contextlib.contextmanager
def browser(width: int, height: int, dark: bool = False) -> Iterator[Any]:
    """A browser of this size without a window, as selenium's driver; it reaches no network."""
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which(PROGRAMS[0]) or PROGRAMS[0]
    for word in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"):
        options.add_argument(word)
    options.add_argument(f"--window-size={width},{height}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    with tempfile.TemporaryDirectory(prefix="browser.") as leavings:  # it removes only its profile
        environment = {**os.environ, "TMPDIR": leavings}
        service = webdriver.ChromeService(executable_path=shutil.which(PROGRAMS[1]), env=environment)
        driver = webdriver.Chrome(options=options, service=service)
        try:
            size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
            driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
            scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
            driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
            yield driver
        finally:
            driver.quit()


def taken(above: str) -> bytes:
    """The picture of the example's page as PNG; `above`: a folder for the example."""
    page = document.write([example_run.make(above)], None)
    with browser(_WIDTH, _HEIGHT) as driver:
        driver.get("file://" + page)
        driver.execute_script("document.querySelector('#diagnosis details').open = false")
        return shot(driver, _WIDTH, _HEIGHT)


def shot(driver: Any, width: int, height: int, **more: object) -> bytes:
    """The browser's picture as PNG. more: as Page.captureScreenshot takes it."""
    clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
    taken = driver.execute_cdp_cmd("Page.captureScreenshot", {"format": "png", "clip": clip, **more})
    return base64.b64decode(taken["data"])


def missing() -> bool:
    """Whether the browser is missing; a line on stderr then reports it."""
    lacking = [name for name in PROGRAMS if not shutil.which(name)]
    if lacking:
        print(f"page_pictures: {lacking[0]} is not on PATH: apt-get install chromium chromium-driver", file=sys.stderr)
    return bool(lacking)


def main() -> int:
    from PIL import Image

    if missing():
        return 1
    with tempfile.TemporaryDirectory() as above:
        image = Image.open(io.BytesIO(taken(above))).convert("RGB")
    image.quantize(_COLOURS, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE).save(PICTURE, optimize=True)
    print(f"written: {os.path.relpath(PICTURE)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
