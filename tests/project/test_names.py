"""What comments, docstrings and pages name exists: files of ours, and names in our modules."""

import ast
import fnmatch
import functools
import json
import re
import subprocess

import documents
import language_code
import pytest
from suite.cases import none
from test_structure import MODULES

ROOT = documents.ROOT
SHELL_COMMENT = re.compile(r"(?m)(?:^|\s)#(?!!)\s?(.*)$")
PATH = re.compile(r"(?<![\w./*~$}<:-])((?:[\w*-]+/)*[\w*-]+\.(?:py|sh|bash|bats|po|mo))(?![\w/]|\.\w|-\w)")
NAME = re.compile(r"(?<![\w./\"'-])([A-Za-z_]\w*)\.([A-Za-z_]\w*)(?![\w/.=\"'-])")
DOTTED = re.compile(r"\b(?:hccl_tools|tools)(?:\.[A-Za-z_]\w*)+")
# What looks like a name in a module and is a file: launch.json, report.html, run.png.
ENDING = re.compile("py|sh|bash|bats|md|jsonl?|ya?ml|log|env|html|css|js|txt|conf|po|mo|svg|png|cc|out")
# Files of users, of MindSpore's tutorials and of other projects.
OTHERS = (
    "x.py",
    "x.sh",
    "ascendNp.sh",
    "dies.py",
    "prepare_SCRIPT.py",
    "run_mindformer.py",
    "sitecustomize.py",
    "conftest.py",
)
ABOUT_OTHERS = re.compile(
    r"docs/(zh/)?(tutorials\w*|trainers|start_scripts|migrating|public_commands|when_it_fails)\.md|CHANGELOG.md"
)


@functools.cache
def files():
    """The paths of all files of the project."""
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    return [name for name in names if (ROOT / name).exists()]


@functools.cache
def endings():
    """What a file may be called: its path, and all that this ends in."""
    parts = [path.split("/") for path in files()]
    return {"/".join(each[number:]) for each in parts for number in range(len(each))}


def statements(tree):
    """The statements of a file, without the expressions in them."""
    for field in ("body", "orelse", "handlers", "finalbody"):
        found = getattr(tree, field, [])
        for node in found if isinstance(found, list) else []:
            yield node
            yield from statements(node)


def told_by_code(path):
    """What people read in a file of code: its comments, and the docstrings of Python."""
    source = documents.read(path)
    if not path.endswith(".py"):
        return "\n".join(SHELL_COMMENT.findall(source))
    texts = [text for _, text in language_code.comments(source)]
    tree = ast.parse(source)
    for node in (tree, *statements(tree)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
            texts.append(ast.get_docstring(node) or "")
    return "\n".join(texts)


def told_by_page(path):
    """What a page has as code within its sentences; test_documents.py types its commands."""
    text = re.sub(r"(?ms)^ *```.*?^ *```", "", documents.read(path))
    return "\n".join(re.findall(r"`([^`\n]+)`", text))


@functools.cache
def texts():
    """{path: what it tells people}"""
    found = {path: told_by_code(path) for path in files() if path.endswith((".py", ".sh", ".bash", ".bats"))}
    return found | {path: told_by_page(path) for path in documents.pages()}


@functools.cache
def known():
    """{module, or class: the names in it} of ours."""
    found = {}
    for name, path in MODULES.items():
        tree = ast.parse(path.read_text(encoding="utf-8"))
        inside = found.setdefault(name.rpartition(".")[2], set())
        inside |= {other.rpartition(".")[2] for other in MODULES if other.rpartition(".")[0] == name}
        inside |= names_in(tree)
        for node in statements(tree):
            if isinstance(node, ast.ClassDef):
                members = found.setdefault(node.name, set())
                for inner in ast.walk(node):
                    members |= names_in(inner) if isinstance(inner, (ast.ClassDef, ast.FunctionDef)) else set()
                    if isinstance(inner, ast.Attribute):
                        members.add(inner.attr)
    return found


def names_in(tree):
    """What is defined in a module or a class."""
    found = set()
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
            found.add(node.name)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            found |= {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
        elif isinstance(node, (ast.If, ast.Try, ast.With)):
            found |= names_in(node)
        for target in getattr(node, "targets", [getattr(node, "target", None)]):
            found |= {part.id for part in ast.walk(target) if isinstance(part, ast.Name)} if target else set()
    return found


def is_there(name):
    """Whether a file of ours has this path, or one that ends so."""
    if "*" not in name:
        return name in endings()
    return any(fnmatch.fnmatch(path, name) or fnmatch.fnmatch(path, f"*/{name}") for path in files())


def is_module_or_in_one(dotted):
    """Whether this is a module of ours, a room, or a name in one."""
    if any(f"{name}.".startswith(f"{dotted}.") for name in MODULES):
        return True
    module = max((name for name in MODULES if dotted.startswith(f"{name}.")), key=len, default="")
    name, _, inner = dotted[len(module) + 1 :].partition(".")
    if not module or name not in known()[module.rpartition(".")[2]]:
        return ENDING.fullmatch(dotted.rpartition(".")[2]) is not None
    return not inner or inner in known().get(name, ())


@pytest.mark.slow
def test_every_file_that_is_named_exists():
    named = [(path, name) for path, text in texts().items() for name in PATH.findall(text)]
    assert len(named) > 500
    named = [pair for pair in named if pair[1].rpartition("/")[2] not in OTHERS]
    named = [(path, name) for path, name in named if "/" in name or not ABOUT_OTHERS.fullmatch(path)]
    none(sorted({f"{path} names {name}" for path, name in named if not is_there(name)}))


@pytest.mark.slow
def test_every_name_in_a_module_or_class_of_ours_exists():
    """In lower case the owner may be a variable, as in run.log_of, or a key of a config or of a page of JSON."""
    keys = {"outcome", "trial"} | set(json.loads(documents.read("schemas/train_config.schema.json"))["properties"])
    seen, wrong = 0, set()
    for path, text in texts().items():
        if path.startswith("tests/"):
            continue
        wrong |= {f"{path} names {dotted}" for dotted in DOTTED.findall(text) if not is_module_or_in_one(dotted)}
        for owner, name in NAME.findall(text):
            if owner not in known() or ENDING.fullmatch(name) or (name.startswith("__") and name.endswith("__")):
                continue
            seen += 1
            inside = known()[owner] | known().get(owner.title().replace("_", ""), set())
            if name not in inside and owner not in keys:
                wrong.add(f"{path} names {owner}.{name}")
    assert seen > 50
    none(sorted(wrong))
