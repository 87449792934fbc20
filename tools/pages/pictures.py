"""Draws docs/pictures, one SVG per picture and language.

python -m tools.pages.pictures

The words are in pictures.yaml.  Everything that a picture shows of the project comes from it.  The report is a
recording.  The commands that build and show rank tables make the tables.  The packages come from their folders.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import yaml

from hccl_tools.common import project
from tools.pages import live_picture, modules_page, report_picture, svg

FOLDER = Path(project.path("docs", "pictures"))
_SUFFIX = {"en": "", "zh": "_cn"}
_BUILD = ["hccl_tools/hccl_tools.py", "--server_ip", "10.0.0.1", "--hccn_conf", "configs/demo_hccn.conf", "--stdout"]


def run(*words: str, text: str = "") -> str:
    """The output of a Python command of the project."""
    command = [sys.executable, *words]
    return subprocess.run(command, cwd=project.ROOT, input=text, capture_output=True, text=True, check=True).stdout


def report(words: dict[str, Any]) -> str:
    """The report of the failure in README.md, as it looks on a terminal."""
    return report_picture.drawing(words["title"])


def rank_table(words: dict[str, Any]) -> str:
    """The JSON text of a table of two devices, and next to it the drawing of show_hccl.py."""
    table = run(*_BUILD, "--devices", "[0,2)")
    drawing = drawn(table)
    lines = table.rstrip("\n").splitlines()
    parts = svg.box(8, 8, 400, 20 + 17 * len(lines), [])
    for number, line in enumerate(lines):
        parts.append(f'<text xml:space="preserve" x="20" y="{32 + 17 * number}" class="code">{escape(line)}</text>')
    parts += [svg.arrow((418, 100), (452, 100)), svg.inner(462, 20, drawing)]
    return svg.document(462 + width_of(drawing) + 8, 36 + 17 * len(lines), words["title"], parts)


def groups_910a(words: dict[str, Any]) -> str:
    """The eight devices of a 910A host, in the groups that can run one job."""
    drawing = drawn(run(*_BUILD, "--devices", "[0,8)"), "--generation", "910A")
    height = int(re.findall(r'height="(\d+)"', drawing)[0])
    return svg.document(width_of(drawing), height, words["title"], [svg.inner(0, 0, drawing)])


def drawn(table: str, *options: str) -> str:
    """The drawing of a table's text by show_hccl.py."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        file.write(table)
        file.flush()
        return run("hccl_tools/show_hccl.py", "--svg", *options, file.name)


def width_of(drawing: str) -> int:
    """The width that an SVG gives itself."""
    return int(re.findall(r'width="(\d+)"', drawing)[0])


def who_starts_whom(words: dict[str, Any]) -> str:
    """One row per way of launching: the script, then who starts whom, down to the ranks."""
    parts: list[str] = []
    for number, (script, *steps) in enumerate(words["rows"]):
        top = 12 + 72 * number
        parts += [svg.text(12, top + 20 + 18 * line, name, "code") for line, name in enumerate(wrapped(script))]
        left, width = 232.0, 152.0
        for index, step in enumerate(steps):
            last = index == len(steps) - 1
            if last:
                left, width = 232 + 3 * 176, 176
                parts.append(svg.arrow((232 + (index - 1) * 176 + 152, top + 24), (left, top + 24)))
            elif index:
                parts.append(svg.arrow((left - 24, top + 24), (left, top + 24)))
            parts += svg.box(left, top, width, 48, wrapped(step, 22), "rank" if last else "box", named=False)
            left += 176
    return svg.document(948, 24 + 72 * len(words["rows"]), words["title"], parts)


def wrapped(words: str, width: int = 24) -> list[str]:
    """The words in at most two lines of `width` characters, of which a Chinese one counts as two."""
    wide = [2 if ord(character) > 0x2E80 else 1 for character in words]
    places = [index + 1 for index, character in enumerate(words) if character in " ，；"]
    fitting = [place for place in places if sum(wide[:place]) <= width + 1]
    if sum(wide) <= width or not places:
        return [words]
    cut = fitting[-1] if fitting else places[0]
    return [words[:cut].strip(), words[cut:].strip()]


def supervisor(words: dict[str, Any]) -> str:
    """The four states along a line of time, and what leads from one to the next."""
    parts = [svg.arrow((20, 168), (1050, 168))]
    for number, ((state, meaning), time) in enumerate(zip(words["states"], words["times"])):
        left = 20 + 262 * number
        lines = [state, *wrapped(meaning, 30)]
        parts += svg.box(left, 44, 222, 84, lines, ("rank", "stop", "stop", "box")[number])
        parts.append(f'<path class="all" d="M{left} 128 V176"/>')
        parts += [svg.text(left, 194 + svg.LINE * row, line, "small") for row, line in enumerate(wrapped(time, 30))]
        if number:
            parts.append(svg.arrow((left - 40, 86), (left, 86)))
    parts += [svg.arrow((131, 44), (131, 22), (917, 22), (917, 44)), svg.text(400, 16, words["short"], "small")]
    parts += [svg.arrow((393, 128), (393, 150), (880, 150), (880, 128)), svg.text(560, 145, words["early"], "small")]
    return svg.document(1068, 232, words["title"], parts)


def rooms(words: dict[str, Any]) -> str:
    """The rooms of both packages with their modules, from the top to the bottom."""
    parts = [svg.arrow((536, 60), (556, 60))]
    heights = []
    for column, (package, names) in enumerate(modules_page.ROOMS.items()):
        left, top = 16 + 540 * column, 36
        parts.append(svg.text(left, 24, f"{package}/", "name"))
        for name in names:
            inside = sorted(path for path in Path(project.path(package, name)).iterdir() if path.name[:1] not in "_.")
            modules = [
                path.stem if path.is_file() else f"{path.name}/" for path in inside if path.suffix in (".py", "")
            ]
            lines = textwrap.wrap(", ".join(modules), 70)
            parts += svg.box(left, top, 520, 22 + svg.LINE * len(lines), [f"{name}/", *lines])
            top += 30 + svg.LINE * len(lines)
        heights.append(top)
    return svg.document(1092, max(heights) + 8, words["title"], parts)


def live_screen(words: dict[str, Any]) -> str:
    """The screen of tools/watch.py."""
    return live_picture.drawing(words["title"])


PICTURES = (report, live_screen, rank_table, groups_910a, who_starts_whom, supervisor, rooms)


def drawings() -> dict[str, str]:
    """{file name: SVG} of all pictures in all languages that they have words for."""
    with open(project.path("tools", "pages", "pictures.yaml"), encoding="utf-8") as file:
        texts = yaml.safe_load(file)
    return {
        f"{picture.__name__}{_SUFFIX[language]}.svg": picture(words)
        for picture in PICTURES
        for language, words in texts[picture.__name__].items()
    }


def main() -> int:
    FOLDER.mkdir(exist_ok=True)
    for name, drawing in drawings().items():
        (FOLDER / name).write_text(drawing, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
