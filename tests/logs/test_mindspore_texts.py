"""Every text with which the installed MindSpore says that a launch failed is known to a rule, or knowingly not.

The texts are taken from the wheel: strings of its libraries, and what msrun's Python raises or logs as an error.  Those
that no rule takes are in mindspore_texts.yaml, under the reason why.  A newer MindSpore fails here with what is new.
"""

from __future__ import annotations

import ast
import importlib.util
import re
from pathlib import Path

import pytest
import yaml
from known import ENTRIES

from tools.logs import known_failures

LISTED = yaml.safe_load((Path(__file__).parent / "mindspore_texts.yaml").read_text(encoding="utf-8"))
UNKNOWN = {text: reason for reason, texts in LISTED["unknown"].items() for text in texts}
LIBRARIES = ("libmindspore_cluster.so", "libmindspore_hardware_abstract.so", "libmindspore_cpu.so")
HEAD = "[ERROR] DISTRIBUTED(26135,7fc4200a06c0,python):2026-01-02-03:04:05.146.623 [mindspore/ccsrc/x.cc:79] F] "

_RUN = re.compile(rb"[\x09\x0a\x20-\x7e]{16,}")
_FAULT = re.compile(
    r"(?i)fail|invalid|illegal|\bnot\b|n't|time[ds]? ?out|occup|redundant|reject|exceed|in use|repeated|disconnect|"
    r"\bexit|lost|extra|incorrect|cannot|conflict|mismatch|should be|less than|abnormal|error|unable"
)
_OF_A_LAUNCH = re.compile(
    r"(?i)node|cluster|rank|scheduler|server|MS_|port\b|\burl|group|communicat|collective|device|host|worker|register|"
    r"topo|actor|meta|unique id|\bip\b|socket|bind|listen|environment|env "
)
_FOREIGN = re.compile(r"(?i)::|pybind|nlohmann|grpc|ssl|protobuf|proto3|google|\btls\b|%[dsl]|ZeroCopy|PYBIND")


def of_a_library(path: Path) -> set[str]:
    """What it may say of a launch that failed; a text with a value in it is in several pieces."""
    texts = (run.group().decode().strip() for run in _RUN.finditer(path.read_bytes()))
    return {
        text
        for text in texts
        if text.count(" ") > 1 and _FAULT.search(text) and _OF_A_LAUNCH.search(text) and not _FOREIGN.search(text)
    }


def of_python(path: Path) -> set[str]:
    """What it raises, or logs as an error; a value is written as 1."""
    told = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        call = node.exc if isinstance(node, ast.Raise) else node
        if isinstance(call, ast.Call) and (isinstance(node, ast.Raise) or ast.unparse(call.func) == "logger.error"):
            told |= {_text(word) for word in call.args[:1]}
    return told - {""}


def _text(node: ast.expr) -> str:
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(part.value if isinstance(part, ast.Constant) else "1" for part in node.values)
    return ""


@pytest.fixture(scope="module")
def texts() -> set[str]:
    found = importlib.util.find_spec("mindspore")
    if found is None or not found.submodule_search_locations:
        pytest.skip("MindSpore is not installed, so there is no wheel to take texts from")
    root = Path(found.submodule_search_locations[0])
    version = re.search(r"\d+\.\d+", (root / "version.py").read_text(encoding="utf-8"))
    if version is None or _number(version[0]) < _number(LISTED["mindspore"]):
        pytest.skip(f"the list is of MindSpore {LISTED['mindspore']}, and this one is older")
    told = set().union(*(of_a_library(root / "lib" / name) for name in LIBRARIES))
    return told.union(*map(of_python, (root / "parallel" / "cluster" / "process_entity").glob("_*.py")))


def _number(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def is_known(text: str) -> bool:
    """Whether a rule takes it, alone in an error."""
    return bool(known_failures.by_lines(ENTRIES, [HEAD + text.replace("\n", " ")]))


@pytest.mark.slow
def test_every_text_is_known_or_knowingly_not(texts):
    new = sorted(text for text in texts if text not in UNKNOWN and not is_known(text))
    assert new == [], "write a rule for what is new, or add it to mindspore_texts.yaml with the reason"


@pytest.mark.slow
def test_no_text_is_both(texts):
    assert [text for text in UNKNOWN if is_known(text)] == []


@pytest.mark.slow
def test_enough_is_known(texts):
    """The launch texts that people meet; the extraction finds them, and a rule takes each."""
    for words in (
        "This node could be redundant and is not successfully registered.",
        "The total number of timed out node is",
        "is timed out. It may exit with exception, please check this node's log.",
        "Failed to open rank table file. Won't reassign rank id based on rank table file.",
        "are all in use already.",
        "Failed to call bind, url:",
        "is not equal to total number of devices",
        "Failed to fetch the unique id of the collective lib",
        "Worker process 1 exit with exception. Error code: 1.",
        "DNS resolution has failed.",
    ):
        assert [text for text in texts if words in text], words
    assert sum(map(is_known, texts)) >= 60
