"""docs/architecture.md names what is there: every file that it names exists, and every file has its place in it."""

import fnmatch
import re
import subprocess

import documents
import pytest

ROOT = documents.ROOT
PAGE = "docs/architecture.md"
SOURCE = documents.read(PAGE)
# What a run makes, and files of the user's.
MADE = ("launch.json", "train.log", "rank_*.log", "rank_*.env", "scheduler.*", "logs/*", "/*", "hccl_*.json")


@pytest.fixture(scope="module")
def files():
    """The paths of all files of the project."""
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    return subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()


def named(text=SOURCE):
    """Every word of the text that is code."""
    return {word for code in re.findall(r"`([^`\n]+)`", text) for word in code.split()}


def exists(name, files):
    """Whether `name`, a path or its end, or a pattern, is a file or a folder of the project."""
    ends = [name, "*/" + name] if not name.endswith("/") else [name + "*", "*/" + name + "*"]
    return any(fnmatch.fnmatch(path, end) for path in files for end in ends)


def test_every_file_and_folder_that_the_page_names_exists(files):
    form = r"[\w*{}.-]*(?:/[\w*.-]*)+|[\w*-]+\.(?:sh|py|md|yaml|json|conf|bash)"
    paths = [word for word in named() if re.fullmatch(form, word)]
    paths = [path for path in paths if not any(fnmatch.fnmatch(path, pattern) for pattern in MADE)]
    assert len(paths) > 60
    assert [path for path in paths if not exists(path, files)] == []


@pytest.mark.parametrize("folder", ["scripts", "scripts/lib", "scripts/lib/engines", "hccl_tools", "tools"])
def test_every_command_and_library_is_named(folder, files):
    names = [path.rpartition("/")[2] for path in files if path.rpartition("/")[0] == folder]
    words = named()
    missing = [name for name in names if not any(fnmatch.fnmatch(name, word.rpartition("/")[2]) for word in words)]
    assert [name for name in missing if name != "__init__.py"] == []


def rows(package):
    """{room: the words of code in its row} of the table of a package."""
    part = SOURCE.partition(f"### `{package}/`")[2].partition("\n## ")[0].partition("\n### ")[0]
    return {room: named(words) for room, words in re.findall(r"^\| `(\w+)/` \| (.*) \|$", part, re.MULTILINE)}


@pytest.mark.parametrize("package", ["hccl_tools", "tools", "tools/launch"])
def test_the_table_of_rooms_names_every_module_and_no_other(package, files):
    there = {}
    for path in files:
        room, *inner = path.removeprefix(f"{package}/").split("/")
        if path.startswith(f"{package}/") and inner and path.endswith(".py"):
            inside = there.setdefault(room, set())
            inside |= {inner[0] + "/"} if len(inner) > 1 else {inner[0][:-3]} - {"__init__"}
    told = {room: {word for word in words if re.fullmatch(r"[a-z_]+/?", word)} for room, words in rows(package).items()}
    assert told == there


def test_the_first_walk_takes_at_most_twelve_files():
    walk = SOURCE.partition("**`bash scripts/ascend4p.sh CONFIG`")[2].partition("\n\n**")[0]
    assert 8 <= len({word for word in named(walk) if "/" in word and "." in word}) <= 12
