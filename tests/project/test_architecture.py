"""docs/architecture.md is short and names what is there, and docs/modules.md lists every module."""

import fnmatch
import re
import subprocess

import documents
import pytest

from tools.pages import modules_page

ROOT = documents.ROOT
SOURCE = documents.read("docs/architecture.md")
# What a run makes, and files of the user's.
MADE = ("launch.json", "request.json", "train.log", "report.html", "logs/*", "/*")


@pytest.fixture(scope="module")
def files():
    """The paths of all files of the project."""
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    return [name for name in names if (ROOT / name).exists()]


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
    assert len(paths) > 40
    assert [path for path in paths if not exists(path, files)] == []


def test_every_function_that_guards_a_border_exists():
    table = re.findall(r"(?m)^\|[^|]+\|[^|]+\|([^|]+)\|", documents.read("docs/borders.md"))
    functions = {name for cell in table for name in re.findall(r"`(\w+)\.(\w+)`", cell)}
    assert len(functions) > 25
    code = {}
    for path in [*(ROOT / "tools").rglob("*.py"), *(ROOT / "hccl_tools").rglob("*.py")]:
        text = path.read_text(encoding="utf-8")
        for name in [path.stem, *re.findall(r"(?m)^class (\w+)", text)]:
            code[name] = code.get(name, "") + text
    functions -= {("shlex", "quote"), ("host_check", "py")}  # Python's own, and a file
    assert [name for name in functions if f"def {name[1]}(" not in code.get(name[0], "")] == []


def test_what_is_written_by_hand_is_read_in_ten_minutes():
    assert SOURCE.count("\n") <= 200


@pytest.mark.parametrize(("title", "most"), [("An exit status", 7), ("`bash scripts/ascend4p.sh CONFIG`", 8)])
def test_a_walk_is_short(title, most):
    walk = SOURCE.partition(f"**{title}")[2].partition("\n\n**")[0].partition("\n## ")[0]
    assert 5 <= len({word for word in named(walk) if re.fullmatch(r"\w+/[\w/]+\.(?:py|sh)", word)}) <= most


@pytest.mark.slow
def test_the_index_of_modules_is_up_to_date():
    assert documents.read("docs/modules.md") == modules_page.page(), (
        "run: python -m tools.pages.modules_page > docs/modules.md"
    )


def test_the_index_and_the_picture_have_every_room_in_the_order_of_their_arrows():
    found = modules_page.modules()
    for package, rooms in modules_page.ROOMS.items():
        assert sorted(rooms) == sorted(
            {folder.parts[1] for folder in found if folder.parts[0] == package != str(folder)}
        )


@pytest.mark.slow
def test_every_module_says_what_it_is():
    paths = [path for paths in modules_page.modules().values() for path in paths]
    assert [path for path in paths if not modules_page.first_line(path)] == []


def test_all_scripts_hand_over_by_the_same_lines():
    """run_slurm.sh has one more step between them: Slurm runs a copy of it."""
    texts = [path.read_text(encoding="utf-8") for path in sorted((ROOT / "scripts").glob("*.sh"))]
    texts = [text for text in texts if '\\. "$LAUNCH_LIB/start.sh"' in text]
    own = documents.read("scripts/ascend2p.sh")
    head = re.search(r"(?s)\ncase \$\{BASH_VERSION-\}.*?\nfi\n", own)[0].split("\n")[1:-1]
    assert len(texts) > 15 and len(head) > 7
    assert [text for text in texts if not set(head) <= set(text.splitlines())] == []
