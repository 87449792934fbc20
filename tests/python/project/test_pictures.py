"""The pictures in docs/pictures show what the project is now, and the site that `make docs` builds has no dead link."""

import os
import re
import subprocess
import sys
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


def test_the_site_has_no_dead_link(tmp_path):
    pytest.importorskip("material", reason="needs mkdocs-material")
    site.gather(tmp_path / "pages")
    settings = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").replace("site/", f"{tmp_path}/")
    (tmp_path / "mkdocs.yml").write_text(settings, encoding="utf-8")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-f", str(tmp_path / "mkdocs.yml")]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1", "PYTHONWARNINGS": "ignore"}
    built = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment)
    assert built.returncode == 0, built.stderr
    assert (tmp_path / "html" / "index.html").is_file()
    assert (tmp_path / "html" / "search" / "search_index.js").is_file(), "search does not work without a server"


def test_the_site_deletes_no_folder_but_its_own(tmp_path, capsys):
    (tmp_path / "README.md").write_text("mine")
    assert site.main([str(tmp_path)]) == 2 and "name a new folder" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["README.md"]
    for _ in range(2):
        assert site.main([str(tmp_path / "pages")]) == 0
