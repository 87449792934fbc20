"""Gathers the Markdown files for the site that `make docs` builds.

python -m tools.pages.site FOLDER

The pages link to one another and to files of the project by relative paths, so that they can be read where they are.
The site keeps these paths: FOLDER gets a copy of every page, and of every file that a page links to, at the same place.
The pages of the commands (command_pages.py) are made there, too. site_hooks.py adapts what mkdocs makes of all of them.
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from hccl_tools.common import project
from hccl_tools.common.refusal import USAGE, Refusal
from hccl_tools.common.words import one_line
from tools.pages import command_pages, commands

_LINK = re.compile(r"\]\(([^)#\s]+)|(?:src|srcset)=\"([^\"]+)\"")
_TO_FOLDER = re.compile(r"\[([^\]]+)\]\(([^)#\s]+/)\)")
_MARK = ".made-by-tools-pages-site"  # in a folder that may be deleted


def pages() -> list[Path]:
    """The Markdown files of the project that readers get, relative to its folder."""
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"]
    names = subprocess.run(listed, cwd=project.ROOT, capture_output=True, text=True, check=True).stdout.split()
    return sorted(Path(name) for name in names if name.startswith(("docs/", "examples/")) or "/" not in name)


def language_of(page: str) -> str:
    """The language of a page: "zh", or "en"."""
    return "zh" if page.startswith("docs/zh/") or page.endswith("_CN.md") else "en"


def other(page: str) -> str:
    """The place of the same page in the other language, if there is one."""
    if page.startswith("docs/"):
        here, there = ("docs/zh/", "docs/") if page.startswith("docs/zh/") else ("docs/", "docs/zh/")
        return there + page[len(here) :]
    here, there = ("_CN.md", ".md") if page.endswith("_CN.md") else (".md", "_CN.md")
    return page[: -len(here)] + there


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


def text_of(page: Path) -> str:
    """The page as it is on the site: a link to a folder of the project is its text, as the site shows no folders."""
    root = Path(project.ROOT)

    def shown(match: re.Match[str]) -> str:
        return match[1] if (root / page.parent / match[2]).is_dir() else match[0]

    return _TO_FOLDER.sub(shown, (root / page).read_text(encoding="utf-8"))


def gather(folder: Path) -> int:
    """Puts pages, and files that they link to, into `folder`, which is replaced; returns how many.

    Deletes only a folder that an earlier call made.  Raises Refusal.
    """
    root = Path(project.ROOT)
    files = {path for page in pages() for path in [page, *linked(page)]}
    if (folder / _MARK).is_file():
        shutil.rmtree(folder)
    elif folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
        raise Refusal(USAGE, f"{one_line(folder)} exists, and is not a folder of this command; name a new folder")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / _MARK).touch()
    for path in files:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".md":
            (folder / path).write_text(text_of(path), encoding="utf-8")
        else:
            shutil.copyfile(root / path, folder / path)
    made = command_pages.pages()
    for path, text in made.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    return len(files) + len(made)


def main(arguments: list[str]) -> int:
    if len(arguments) != 1:
        print("usage: python -m tools.pages.site FOLDER", file=sys.stderr)
        return 2
    folder = Path(arguments[0])
    try:
        for path in commands.PYTHON_COMMANDS:
            if missing := command_pages.lacks(path):
                print(f"no page for {path}: its --help needs {', '.join(missing)}", file=sys.stderr)
        print(f"{gather(folder)} files in {one_line(folder)}")
    except Refusal as refusal:
        print(*refusal.lines, sep="\n", file=sys.stderr)
        return refusal.status
    except subprocess.CalledProcessError as error:  # a page would be missing
        print(
            f"{one_line(shlex.join(error.cmd))} ended with {error.returncode}: {one_line(error.stderr)}",
            file=sys.stderr,
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
