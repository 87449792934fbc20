"""Makes the page that lists every module, from the first line of each docstring.

python -m tools.pages.modules_page > docs/modules.md
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from hccl_tools.common import project
from hccl_tools.common.grouping import grouped
from tools.pages.options_page import table

ROOT = Path(project.ROOT)
# {package: its rooms}, from the top to the bottom: each uses only those below it.
ROOMS = {
    "tools": [
        "pages",
        "front",
        "preflight",
        "doctor",
        "features",
        "engines",
        "forking",
        "live",
        "run_page",
        "history",
        "monitor",
        "together",
        "diagnosis",
        "start_script",
        "command",
        "rank",
        "output",
        "supervise",
        "launch",
        "attempts",
        "trainer",
        "progress",
        "logs",
        "config",
    ],
    "hccl_tools": ["commands", "show", "compare", "convert", "hosts", "build", "check", "machine", "table", "common"],
}
_HEAD = """\
# Modules

Made by `python -m tools.pages.modules_page` from the first line of each module's docstring.
[Architecture](architecture.md) says how they work together.
"""


def modules() -> dict[Path, list[Path]]:
    """{folder: its modules} of all folders with Python files, relative to the project's."""
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard", *(f"{name}/*.py" for name in ROOMS)]
    names = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    return grouped((path.parent, path) for path in sorted(Path(name) for name in names if (ROOT / name).is_file()))


def first_line(path: Path) -> str:
    """The first paragraph of the module's docstring, fit for Markdown."""
    told = ast.get_docstring(ast.parse((ROOT / path).read_text(encoding="utf-8"))) or ""
    return " ".join(told.partition("\n\n")[0].split()).replace("|", "\\|").replace("<", "&lt;")


def page() -> str:
    """The page in Markdown."""
    return "\n".join([_HEAD, *_sections()])


def _sections() -> Iterator[str]:
    found = modules()
    for package, rooms in ROOMS.items():
        yield f"## `{package}/`\n"
        yield from _section(found[Path(package)])
        for room in rooms:
            for folder in sorted(folder for folder in found if folder.parts[:2] == (package, room)):
                yield f"### `{folder}/`\n"
                yield from _section(found[folder])


def _section(paths: list[Path]) -> Iterator[str]:
    """What the folder is, then a row for each of its modules."""
    rows = [(f"`{path.stem}`", first_line(path)) for path in paths if path.name != "__init__.py"]
    for path in paths:
        if path.name == "__init__.py":
            yield first_line(path) + "\n"
    if rows:
        yield table(("module", "what it is"), rows)


if __name__ == "__main__":
    sys.stdout.buffer.write(page().encode("utf-8"))
