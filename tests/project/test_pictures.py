"""The pictures in docs/pictures show what the project is now."""

import re
import xml.etree.ElementTree as ElementTree

import documents
import pytest

from tools.pages import pictures, site

pytestmark = pytest.mark.thorough

ROOT = documents.ROOT


@pytest.fixture(scope="module")
def drawn():
    """{file name: SVG} as it would be drawn now."""
    return pictures.drawings()


def test_the_pictures_are_up_to_date(drawn):
    there = {path.name: path.read_text(encoding="utf-8") for path in pictures.FOLDER.glob("*.svg")}
    assert sorted(there) == sorted(drawn)
    assert [name for name in drawn if there[name] != drawn[name]] == [], "run: python -m tools.pages.pictures"


def test_every_picture_is_an_svg_with_a_title(drawn):
    for name, drawing in drawn.items():
        title = ElementTree.fromstring(drawing).find("{http://www.w3.org/2000/svg}title")
        assert title is not None and title.text, name


def test_scripts_that_a_picture_names_exist(drawn):
    for name, drawing in drawn.items():
        for script in re.findall(r"\b[a-z_0-9]+\.sh\b", drawing):
            assert (ROOT / "scripts" / script).is_file(), f"{name} names {script}"


def test_every_picture_is_on_a_page(drawn):
    pages = "".join((ROOT / page).read_text(encoding="utf-8") for page in site.pages())
    assert [name for name in drawn if f"pictures/{name}" not in pages] == []
