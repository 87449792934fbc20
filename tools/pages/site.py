"""Gathers the Markdown files for the site that `make docs` builds.

python -m tools.pages.site FOLDER

The pages link to one another and to files of the project by relative paths, so that they read well where they are.  The
site keeps these paths: FOLDER gets a copy of every page, and of every file that a page links to, at the same place.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

from hccl_tools.common import project

_LINK = re.compile(r"\]\(([^)#\s]+)|(?:src|srcset)=\"([^\"]+)\"")


def pages() -> list[Path]:
    """The Markdown files of the project that readers get, relative to its folder."""
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"]
    names = subprocess.run(listed, cwd=project.ROOT, capture_output=True, text=True, check=True).stdout.split()
    return sorted(Path(name) for name in names if name.startswith("docs/") or "/" not in name)


def linked(page: Path) -> list[Path]:
    """The files, relative to the project's folder, that the page links to and that are not pages."""
    root = Path(project.ROOT)
    found = []
    for match in _LINK.finditer((root / page).read_text(encoding="utf-8")):
        target = match[1] or match[2]
        path = (root / page.parent / target).resolve()
        if "://" not in target and path.suffix != ".md" and path.is_file():
            found.append(path.relative_to(root))
    return found


def gather(folder: Path) -> int:
    """Copies pages, and files that they link to, into `folder`, which is made anew; returns how many."""
    root = Path(project.ROOT)
    files = {path for page in pages() for path in [page, *linked(page)]}
    if folder.exists():
        shutil.rmtree(folder)
    for path in files:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(root / path, folder / path)
    return len(files)


def main(arguments: list[str]) -> int:
    if len(arguments) != 1:
        print("usage: python -m tools.pages.site FOLDER", file=sys.stderr)
        return 2
    folder = Path(arguments[0])
    if folder.exists() and not (folder / "README.md").is_file() and any(folder.iterdir()):
        print(f"{folder} holds other files than pages; name a new folder", file=sys.stderr)
        return 2
    print(f"{gather(folder)} files in {folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
