"""docs/environment.md and docs/exit_codes.md say what the code does: nothing is missing, nothing is invented."""

import ast
import re
import signal
from pathlib import Path

import documents
import pytest
from suite import needs
from suite.cases import for_each

from hccl_tools.common import refusal
from tools.pages import commands
from tools.rank import environment

ROOT = documents.ROOT
PYTHON_FILES = sorted(path for folder in ("hccl_tools", "tools") for path in (ROOT / folder).rglob("*.py"))
SHELL_FILES = [*sorted((ROOT / "scripts").rglob("*.sh")), ROOT / "tools" / "environment.sh"]
# bash sets these for itself
OF_BASH = {"BASH", "BASH_VERSION", "BASHPID", "EUID", "HOSTNAME", "OSTYPE", "PPID", "PWD", "RANDOM", "REPLY", "SECONDS"}


def listed(page):
    """The variables in the first column of a page's tables."""
    rows = re.findall(r"(?m)^\| ((?:`[A-Za-z_]+` ?)+)\|", documents.read(page))
    return {name for row in rows for name in re.findall(r"`([A-Za-z_]+)`", row)}


def constant(node):
    """The text that an expression always is, or None: a string, or some that are put together."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        parts = constant(node.left), constant(node.right)
        return "".join(parts) if None not in parts else None
    return None


def is_environ(node):
    return "environ" in (getattr(node, "attr", ""), getattr(node, "id", ""))


def read_by_python(source):
    """The names of environment variables that a module reads or sets, where they are text."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Subscript) and is_environ(node.value):
            yield constant(node.slice)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and is_environ(node.func.value):
            yield from map(constant, node.args[:1])
        elif isinstance(node, ast.Compare) and any(map(is_environ, node.comparators)):
            yield constant(node.left)


def read_by_bash(sources):
    """The names that scripts read and do not set, or read although they may not be set."""
    text = "\n".join(re.sub(r"(?m)(^|\s)#.*$", "", source) for source in sources)
    optional = set(re.findall(r"\$\{([A-Z][A-Z_]+)(?::?-)", text))
    used = set(re.findall(r"\$\{?#?([A-Z][A-Z_]+)\b", text))
    own = set(re.findall(r"(?:^|[\s;({!])([A-Z][A-Z_]+)(?:\+?=|\[)|\bread\b[^\n]*?\b([A-Z][A-Z_]+)", text))
    own = {name for pair in own for name in pair} | set(re.findall(r"\{([A-Z][A-Z_]+)\}[<>]", text))
    return {name for name in (used - own) | optional if name not in OF_BASH}


@pytest.mark.slow
def test_every_variable_that_python_reads_is_on_the_page():
    found = {name for path in PYTHON_FILES for name in read_by_python(path.read_text(encoding="utf-8")) if name}
    names = {name for name in found if not name.endswith("_")}
    assert len(names) > 20
    assert names - listed("docs/environment.md") == set()


def test_every_variable_that_bash_reads_is_on_the_page():
    names = read_by_bash([path.read_text(encoding="utf-8") for path in SHELL_FILES])
    assert {"PYTHON", "LAUNCH_LANG", "SHELLOPTS"} <= names
    assert names - listed("docs/environment.md") == set()


def test_every_variable_of_the_contract_is_on_the_page():
    exports = ast.parse((ROOT / "tools/launch/environment.py").read_text(encoding="utf-8"))
    planned = {
        text
        for node in ast.walk(exports)
        if isinstance(node, (ast.Constant, ast.keyword))
        and re.fullmatch(
            "[A-Z][A-Za-z_]+_[A-Za-z_]+",
            text := str(getattr(node, "value", "") if isinstance(node, ast.Constant) else node.arg),
        )
    }
    assert {"RANK_SIZE", "GLOG_v", "GRAPH_OP_RUN", "LAUNCH_STRAGGLER"} <= planned
    assert {*environment.CONTRACT, *environment.DEFAULTS, *planned} - listed("docs/environment.md") == set()


@pytest.mark.thorough
def test_every_variable_of_the_page_is_in_the_code():
    tests = (path for ending in ("*.*sh", "*.bats", "*.py") for path in (ROOT / "tests").rglob(ending))
    files = [path for path in [*PYTHON_FILES, *SHELL_FILES, *tests] if path != Path(__file__)]
    text = "\n".join(path.read_text(encoding="utf-8") for path in files)
    text = re.sub(r'" \+ "', "", text)
    unknown = {name for name in listed("docs/environment.md") if not re.search(rf"\b{name}\b", text)}
    # put together: OMPI_MCA_ and the name of a parameter
    assert {name for name in unknown if name.removeprefix("OMPI_MCA_") not in text} <= {
        f"OMPI_MCA_oob_tcp_keepalive_{name}" for name in ("time", "intvl", "probes")
    }


def test_every_variable_that_the_tests_read_is_on_the_page():
    found = set()
    for path in {*(ROOT / "tests").rglob("*.py")} - {Path(__file__)}:
        found |= set(re.findall(r'environ\.get\("([A-Z_]+)"', path.read_text(encoding="utf-8")))
    found = {name for name in found if not name.startswith("STUB_")}
    assert {"SLOW_TESTS"} <= found
    assert found - listed("docs/environment.md") == set()


@pytest.mark.parametrize("page", ["environment.md", "exit_codes.md"])
def test_the_chinese_page_has_the_same_names_and_codes(page):
    assert listed(f"docs/zh/{page}") == listed(f"docs/{page}")
    rows = [re.findall(r"(?m)^\| ([0-9`][^|]*)\|", documents.read(where + page)) for where in ("docs/", "docs/zh/")]
    numbers = [[re.findall(r"\d+|`[^`]+`", row) for row in found] for found in rows]
    assert numbers[0] == numbers[1]


def test_the_code_finds_what_it_is_to_find():
    source = (
        'import os\nos.environ.get("A_B")\nos.environ["C_" + "D"]\n"E_F" in os.environ\nenviron.setdefault("G", "")\n'
    )
    assert set(read_by_python(source)) == {"A_B", "C_D", "E_F", "G"}
    assert read_by_bash(['echo "${A_B-}" "$C_D"\nE_F=1\necho "$E_F" \'$G_H\' # $I_J\n', "# $K_L\n"]) >= {"A_B", "C_D"}
    assert "E_F" not in read_by_bash(['E_F=1\necho "$E_F"\n'])


def test_what_begins_like_a_program_can_be_started_as_one():
    files = [path for path in (ROOT / "scripts").glob("*.sh")] + [ROOT / name for name in commands.PYTHON_COMMANDS]
    assert all(path.read_text(encoding="utf-8").startswith("#!") for path in files)
    assert [str(path) for path in files if not path.stat().st_mode & 0o100] == []


# ---- exit codes ------------------------------------------------------------------------------------


def codes_of_scripts():
    """{code: text} of the page's first table."""
    table = documents.read("docs/exit_codes.md").partition("## Other commands")[0]
    return dict(re.findall(r"(?m)^\| ([0-9][^|]*?) \| (.*) \|$", table))


# Where the launcher ends, or what it does as its last: a code of its own there is a number or a constant.
ENDS = re.compile(r"(?:\breturn |\b_?exit\(|\b(?:REFUSED|INTERRUPTED|CANNOT_START|KILLED) = )(\d{2,3})\b(?! *\+)")
ENDING = (
    "tools/launch/launcher.py",
    "tools/launch/main.py",
    "tools/launch/run.py",
    "tools/supervise",
    "tools/features",
)
BY_SIGNALS = {str(128 + number) for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM)}


def test_every_code_that_a_script_ends_with_by_itself_is_on_the_page():
    found = {str(code) for code in (refusal.USAGE, refusal.REFUSED)}
    for path in SHELL_FILES:
        if path.name not in ("doctor.sh", "environment.sh"):
            text = re.sub(r"(?m)^\s*#.*$", "", path.read_text(encoding="utf-8"))
            found |= set(re.findall(r"\bexit (\d+)", text))
    for path in PYTHON_FILES:
        if str(path.relative_to(ROOT)).startswith(ENDING):
            found |= set(ENDS.findall(path.read_text(encoding="utf-8")))
    assert {"2", "78", "124", "255"} <= found
    assert found - set(codes_of_scripts()) - BY_SIGNALS == set()


@pytest.mark.slow
def test_help_and_page_name_the_same_codes():
    text = commands.text_of("scripts/launch.sh").rpartition("\nExit: ")[2]
    named = set(re.findall(r"\b(?:0|2|78|124|128\+N)\b", text))
    assert named == {"0", "2", "78", "124", "128+N"} <= set(codes_of_scripts())


@pytest.mark.thorough
@for_each("command", [*(f"scripts/{name}" for name in commands.OTHERS), *commands.PYTHON_COMMANDS])
def test_every_command_has_its_row_with_the_codes_of_its_help(command):
    needs.need_packages_of(command)
    told = commands.text_of(command)
    told = " ".join(re.search(r"(?s)Exit: (.*?\.)\n", told + "\n")[1].split())
    name = Path(command).name
    page = documents.read("docs/exit_codes.md").splitlines()
    (row,) = (line for line in page if line.startswith("| `") and f"`{name}`" in line)
    cells = [cell.strip() for cell in row.strip("|").split("|")[1:]]
    codes = {str(number) for number, cell in enumerate(cells) if cell and cell != "an exception"}
    assert set(re.findall(r"(?:^|, )(\d) ", told)) == codes, f"--help says: Exit: {told}"
