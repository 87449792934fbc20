"""What the Python code says in Chinese: nothing is left out, and each value has its place."""

import ast
import functools
import json
import re
import string

import polib
import pytest
from suite.cases import for_each, none

from hccl_tools.commands import validate
from hccl_tools.common import language
from tools.logs import known_failures
from tools.pages import messages

OURS = [path for path in messages.files() if path.endswith(".py")]
TRAINERS = ("tools/config/", "tools/diagnosis/", "tools/trainer/")


@functools.cache
def chinese():
    """{message: its translation}; read when a test needs it, because each worker imports this file."""
    return {entry.msgid: entry.msgstr for entry in polib.pofile(messages.CATALOGUE)}


@functools.cache
def calls(path):
    """All calls of a file."""
    tree = ast.parse((messages.ROOT / path).read_text(encoding="utf-8"))
    return [node for node in ast.walk(tree) if isinstance(node, ast.Call)]


def calls_of_tr(path):
    """Those, and the calls of functions that give their values to tr."""
    functions = ("tr", "refused", "misused", "faulty", "SuperPodError", "RangeError")
    found = [call for call in calls(path) if getattr(call.func, "attr", getattr(call.func, "id", "")) in functions]
    return [call for call in found if isinstance(call.args[0], ast.Constant)]


def lacks(call):
    """Whether the values that a call of tr gives are not those of its message."""
    names = {keyword.arg for keyword in call.keywords}
    wanted = {name for _, name, _, _ in string.Formatter().parse(call.args[0].value) if name}
    return bool(names) and None not in names and names != wanted


@pytest.mark.slow
@for_each("path", OURS)
def test_a_call_has_the_values_of_its_message(path):
    none(f"line {call.lineno}: {call.args[0].value}" for call in calls_of_tr(path) if lacks(call))


# Functions whose arguments a person reads.
SAYS = {
    "Refusal",
    "Problem",
    "Unusable",
    "ConfigError",
    "say",
    "note",
    "mistake",
    "note_needless",
    "error",
    "exit",
    "add_argument",
    "print",
}
# Where English is meant.
ENGLISH = {
    "hccl_tools/machine/interpreter.py": "runs in Pythons that cannot read the catalogue's module",
    "hccl_tools/check/explain.py": "docs/zh/rank_table_checks.md has the Chinese",
    "hccl_tools/commands/place_table.py": "nobody types it",
    "tools/launch/main.py": "an import has failed, perhaps that of the catalogue's module",
    "tools/launch/engines/mindspore_scheduler.py": "a log",
    "tools/pages/": "for those who change this project",
    "tools/rank/": "the logs of ranks, where other programs look for the words",
}


def words_of(node):
    """The texts in an expression that are not for translation yet: of f-strings only what is between the values."""
    if isinstance(node, ast.Call) and getattr(node.func, "id", "") in messages.PYTHON:
        return
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.JoinedStr):
        yield "".join(part.value if isinstance(part, ast.Constant) else "{}" for part in node.values)
    elif isinstance(node, (ast.BinOp, ast.IfExp, ast.Starred, ast.List, ast.Tuple, ast.keyword)):
        for child in ast.iter_child_nodes(node):
            yield from words_of(child)


@for_each("path", OURS)
def test_no_message_is_left_out(path):
    """A text of three words or more for a function that says it, or in what is raised, goes through tr."""
    left = []
    for call in calls(path):
        name = getattr(call.func, "id", None) or getattr(call.func, "attr", "")
        if name not in SAYS or name == "print" and "stderr" not in ast.dump(call):
            continue
        texts = [text for argument in (*call.args, *call.keywords) for text in words_of(argument)]
        texts = [text for text in texts if len(re.findall(r"(?<![\w{./-])[a-z]{2,}(?![\w=(.])", text)) > 2]
        left += [f"line {call.lineno}: {text}" for text in texts]
    none([] if path.startswith(tuple(ENGLISH)) else left)


@pytest.mark.slow
def test_a_failure_of_our_trainer_is_known_in_both_languages():
    """A rank writes its messages in the user's language into its log."""
    entries, _ = known_failures.load({})

    def codes(message):
        line = "train.py: " + re.sub(r"\{\w+[^}]*\}", "*-1", message).replace("{{", "{").replace("}}", "}")
        return {entry.code for entry, _ in known_failures.by_lines(entries, [line])}

    found = {
        message: (codes(message), codes(chinese()[message]))
        for path in OURS
        if path.startswith(TRAINERS)
        for message in map(text, calls_of_tr(path))
    }
    assert {message: both for message, both in found.items() if both[0] != both[1]} == {}
    assert any(english for english, _ in found.values())


def text(call):
    return call.args[0].value


DIGITS = "configs/mnist/lenet5_digits.yaml"


@pytest.fixture
def in_chinese(in_process, monkeypatch):
    """in_chinese(main, "--help"): what a command says here, typed in the project's folder."""
    monkeypatch.setenv("LAUNCH_LANG", "zh")
    for name in ("RANK_SIZE", "DATA_PATH", "MS_ROLE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(messages.ROOT)
    language._catalogue.cache_clear()
    yield lambda main, *arguments: "".join(in_process(main, *arguments)[1:])
    language._catalogue.cache_clear()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nix.yaml"], "nix.yaml：没有此文件；相对路径从"),
        ([DIGITS, "-o", "system"], "-o system：请写成 键=值"),
        ([DIGITS, "-o", "system.seed=["], "值无法使用：不是 YAML"),
        ([DIGITS, "-o", "scheduler.min_lr=9"], "min_lr=9: /scheduler/min_lr: 学习率会从 0.05 升到 9"),
        ([DIGITS, "-o", "system.distribute=False", "train.dataset.dataset_root=nix"], "dataset_root nix："),
        ([DIGITS, "-o", "system.device_target=CPU"], "此进程不是由启动器启动的"),
        ([DIGITS, "--help"], "按配置训练：单独运行"),
    ],
)
def test_the_trainer_refuses_in_chinese(in_chinese, arguments, said):
    from tools import train  # not by each worker that only lists the tests

    assert said in in_chinese(train.main, "--config", *arguments)


@pytest.mark.parametrize(
    ("address", "remedy"),
    [
        ("0.0.0.0", "请写 `hccn_tool -i 0 -ip -g` 打印的内容"),
        ("", "请加上 `hccn_tool -i 0 -ip -g` 打印的内容"),
        ("192.1.2.199", "请写 `hccn_tool -i 0 -ip -g` 打印的内容"),
    ],
)
def test_the_remedy_for_an_address_is_in_chinese(in_chinese, tmp_path, address, remedy):
    devices = [[{"device_id": "0", "device_ip": f"10.1.0.{n}", "rank_id": str(n)}] for n in range(2)]
    devices[1][0]["device_ip"] = address
    servers = [{"server_id": f"10.0.0.{n}", "device": each} for n, each in enumerate(devices, 1)]
    table = {"version": "1.0", "server_count": "2", "server_list": servers, "status": "completed"}
    (tmp_path / "table.json").write_text(json.dumps(table))
    assert remedy in in_chinese(validate.main, "--generation", "A3", str(tmp_path / "table.json"))
