"""The rooms keep their form: no circles, no borrowed private names, no long files, nothing heavy on the launch path."""

import ast
import functools
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
from suite.cases import for_each, none

from tools.pages import modules_page

ROOT = Path(__file__).resolve().parents[2]
PYTHON = sorted(path for folder in ("hccl_tools", "tools") for path in (ROOT / folder).rglob("*.py"))
# The launcher itself puts all rooms together. The rest of its room makes the plan, and knows none of those who run it.
LAUNCHER = {f"tools.launch.{name}" for name in ("main", "launcher", "run", "life", "dry_run", "instead")}


def name_of(path):
    """The module of a file: hccl_tools/table/view.py is hccl_tools.table.view."""
    parts = list(path.relative_to(ROOT).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {name_of(path): path for path in PYTHON}


def imported_from(node):
    """(module, alias) of each name that a statement takes from a module of the project."""
    if isinstance(node, ast.ImportFrom) and node.module and node.module.partition(".")[0] in ("hccl_tools", "tools"):
        yield from ((node.module, alias) for alias in node.names)


class Module(NamedTuple):
    """What the tests ask about a file of Python, which is read once."""

    imports: set  # the project's modules that it imports, anywhere in it
    borrowed: list  # names of other modules with a leading underscore that it uses
    literals: set  # pieces of text that it may print


@functools.cache
def modules():
    """{path: Module}"""
    return {path: module_of(path) for path in PYTHON}


def module_of(path):
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    return Module(imports_of(nodes) - {name_of(path)}, private_names(nodes), literals(nodes))


def imports_of(nodes):
    """The project's modules that a file imports, but for type checkers alone."""
    typing = [node for node in nodes if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING"]
    unread = {inner for node in typing for each in node.body for inner in ast.walk(each)}
    found = set()
    for node in nodes:
        if node in unread:
            continue
        for module, alias in imported_from(node):
            full = f"{module}.{alias.name}"
            found.add(full if full in MODULES else module)
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name in MODULES}
    return found


def imports():
    """{module: the project's modules that it imports}"""
    return {name: modules()[path].imports for name, path in MODULES.items()}


def circle(graph):
    """The names of one circle of the graph, in order; empty where it has none."""
    done, trail = set(), []

    def visit(name):
        if name in trail:
            return trail[trail.index(name) :]
        if name in done or name not in graph:
            return []
        trail.append(name)
        for other in sorted(graph[name]):
            if found := visit(other):
                return found
        trail.pop()
        done.add(name)
        return []

    return next((found for name in sorted(graph) if (found := visit(name))), [])


def test_a_circle_is_found():
    assert circle({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == ["b", "c"]
    assert circle({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == []


@pytest.mark.slow
def test_no_module_imports_itself_by_way_of_others():
    assert circle(imports()) == []


def room(name):
    """The room of a module; None for the commands beside the rooms."""
    package, _, rest = name.partition(".")
    return (package, rest.partition(".")[0]) if rest and (ROOT / package / rest.partition(".")[0]).is_dir() else None


@pytest.mark.slow
@for_each("package, rooms", modules_page.ROOMS.items())
def test_arrows_between_rooms_lead_downwards_only(package, rooms):
    wrong = []
    for name, others in imports().items():
        for there in filter(None, map(room, others)):
            here = None if name in LAUNCHER else room(name)
            if here and here[0] == there[0] == package and rooms.index(there[1]) < rooms.index(here[1]):
                wrong.append(f"{name} uses {there[1]}/")
            if there[0] == "tools" and name.startswith("hccl_tools"):
                wrong.append(f"{name} uses tools/{there[1]}")
    none(wrong)


def private_names(nodes):
    """Names of other modules with a leading underscore that a file uses, each with its line."""
    others, found = set(), []
    for line, module, alias in ((node.lineno, *pair) for node in nodes for pair in imported_from(node)):
        if f"{module}.{alias.name}" in MODULES:
            others.add(alias.asname or alias.name)
        elif alias.name.startswith("_"):
            found.append(f"line {line}: {alias.name}")
    for node in nodes:
        borrowed = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in others
        if borrowed and node.attr.startswith("_") and not node.attr.startswith("__"):
            found.append(f"line {node.lineno}: {node.value.id}.{node.attr}")
    return found


@for_each("path", PYTHON)
def test_a_module_uses_no_private_name_of_another(path):
    none(modules()[path].borrowed)


@pytest.mark.slow
def test_files_are_short():
    limits = {
        "hccl_tools/**/*.py": 300,
        "tools/**/*.py": 300,
        "scripts/**/*.sh": 120,
        "tests/**/*.*": 500,
        "examples/**/*.py": 150,
    }
    files = [(path, limit) for pattern, limit in limits.items() for path in ROOT.glob(pattern)]
    long = [
        str(path.relative_to(ROOT))
        for path, limit in files
        if path.suffix in (".py", ".sh", ".bash", ".bats") and path.read_text(encoding="utf-8").count("\n") > limit
    ]
    none(long, "split them by subject")


def literals(nodes):
    """The pieces of text of more than 40 characters that a file may print: no docstrings, no comments."""
    docs = {
        node.body[0].value
        for node in nodes
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef))
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    values = (node for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str))
    return {node.value.strip() for node in values if node not in docs and len(node.value.strip()) > 40}


def literals_of_shell(text):
    """The same of a script."""
    lines = [line for line in text.splitlines() if not re.match(r"\s*#|.*options='", line)]
    return {m[2] for line in lines for m in re.finditer(r"""(['"])((?:(?!\1).){41,})\1""", line) if " " in m[2]}


def test_no_message_is_written_twice():
    texts = {path: module.literals for path, module in modules().items()}
    for path in sorted((ROOT / "scripts").rglob("*.sh")):
        texts[path] = literals_of_shell(path.read_text(encoding="utf-8"))
    homes = {}
    for path, found in texts.items():
        for text in found:
            homes.setdefault(text, []).append(str(path.relative_to(ROOT)))
    shared = re.compile("do not copy this script")  # which has no library then
    homes = {text: places for text, places in homes.items() if not shared.search(text)}
    none(f"{', '.join(places)}: {text}" for text, places in homes.items() if len(places) > 1)


HEAVY = {"typing", "dataclasses", "inspect", "jsonschema", "argparse", "subprocess", "rich", "numpy", "mindspore"}


@pytest.mark.slow
def test_the_launch_path_imports_nothing_heavy(tmp_path):
    """`python -X importtime` lists what a launch of two CPU ranks imports, from its start to its report."""
    (tmp_path / "config.yaml").write_text("system:\n  distribute: True\n")
    (tmp_path / "hccn.conf").write_text("address_0=10.1.1.10\naddress_1=10.1.1.11\n")
    (tmp_path / "python").write_text(f'#!/bin/sh\nexec {sys.executable} -X importtime "$@"\n')
    (tmp_path / "python").chmod(0o755)
    stub = str(ROOT / "tests/fixtures/stub_trainer.py")
    words = ["--device_target", "CPU", "--hccn_conf", "hccn.conf", "--train_script", stub, "--console", "none"]
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT / "tests/fixtures/stub_mindspore"),
        "PYTHON": str(tmp_path / "python"),
        "STUB_OUT": str(tmp_path),
    }
    command = ["bash", str(ROOT / "scripts/ascend2p.sh"), *words, "config.yaml"]
    ended = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)
    assert ended.returncode == 0, ended.stderr
    times = [line for line in ended.stderr.splitlines() if line.startswith("import time:")]
    imported = {line.rpartition("|")[2].strip() for line in times}
    assert "tools.launch.plan" in imported and "tools.launch.monitored" not in imported
    assert not [name for name in imported if name.startswith("tools.preflight")]  # without --preflight
    of_python = {"typing"} if sys.version_info < (3, 10) else set()  # importlib.util of Python 3.9 imports it
    assert imported & HEAVY <= of_python
