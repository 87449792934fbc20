"""The site of `make docs`, built from the pages of this checkout, for the tests that read it or look at it."""

import json
import os
import re
import subprocess
import sys

import documents

ROOT = documents.ROOT


def build(folder, menu=None):
    """Runs mkdocs with the pages in folder/pages; the site is in folder/html.  menu: in place of that of mkdocs.yml."""
    settings = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").replace("site/", f"{folder}/")
    if menu:
        settings = re.sub(r"^nav:.*?(?=^\S|\Z)", f"nav: {json.dumps(menu)}\n", settings, flags=re.M | re.S)
    (folder / "mkdocs.yml").write_text(settings.replace("tools/pages/", f"{ROOT}/tools/pages/"), encoding="utf-8")
    command = [sys.executable, "-m", "mkdocs", "build", "-f", str(folder / "mkdocs.yml")]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1", "PYTHONWARNINGS": "ignore"}
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, env=environment)


def addresses(built):
    """{page of the project: the file that the site has of it}"""
    names = [path.relative_to(built / "pages").as_posix() for path in (built / "pages").rglob("*.md")]
    found = {name: re.sub(r"(^|/)README\.md$", r"\1index.md", name) for name in names}
    return {name: built / "html" / re.sub(r"\.md$", ".html", address) for name, address in found.items()}
