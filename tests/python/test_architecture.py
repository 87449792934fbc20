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
MADE = (
    "launch.json",
    "train.log",
    "rank_*.log",
    "rank_*.env",
    "rank_*.stack",
    "scheduler.*",
    "logs/*",
    "/*",
    "hccl_*.json",
)


@pytest.fixture(scope="module")
def files():
    """The paths of all files of the project."""
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    return subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()


def named():
    """Every word of the page that is code, and of its drawings."""
    words = re.findall(r"`([^`\n]+)`", SOURCE)
    for block in documents.blocks(PAGE, SOURCE):
        if "drawing" in block.word:
            words += re.findall(r"[\w/.]+\.(?:sh|py)\b", block.text)
    return words


def exists(name, files):
    """Whether `name`, a path or its end, or a pattern, is a file or a folder of the project."""
    ends = [name, "*/" + name] if not name.endswith("/") else [name + "*", "*/" + name + "*"]
    return any(fnmatch.fnmatch(path, end) for path in files for end in ends)


def test_every_file_and_folder_that_the_page_names_exists(files):
    paths = [
        word for word in named() if re.fullmatch(r"[\w*{}.-]*(?:/[\w*.-]*)+|[\w*-]+\.(?:sh|py|md|yaml|json|conf)", word)
    ]
    paths = [path for path in paths if not any(fnmatch.fnmatch(path, pattern) for pattern in MADE)]
    assert len(paths) > 40
    assert [path for path in paths if not exists(path, files)] == []


@pytest.mark.parametrize("room", ["scripts", "scripts/lib", "scripts/lib/engines", "hccl_tools", "tools"])
def test_every_file_is_named_or_in_a_room_that_is(room, files):
    words = set(named())
    patterns = {word for word in words if "*" in word}
    missing = []
    for path in files:
        folder, _, name = path.rpartition("/")
        if folder == room and name != "__init__.py":
            stem = name.rpartition(".")[0]
            known = words & {name, stem, path, f"lib/{name}", f"engines/{name}", f"`{stem}`"}
            if not known and not any(fnmatch.fnmatch(name, pattern) for pattern in patterns):
                missing.append(path)
    assert missing == [], f"say in {PAGE} what they are for"


def test_every_folder_is_named(files):
    folders = {
        path.rpartition("/")[0] for path in files if path.startswith(("scripts/", "hccl_tools/", "tools/", "tests/"))
    }
    words = {word.rstrip("/") for word in named()}
    rooms = words | {f"{parent}/{word}" for parent in ("hccl_tools", "tools", "tests", "scripts/lib") for word in words}
    missing = [
        folder for folder in folders if not any(folder == room or folder.startswith(room + "/") for room in rooms)
    ]
    assert missing == []
