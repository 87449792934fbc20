"""What tools/ says in Chinese: configs, the known failures of its own trainer, the text of --help."""

import ast
import os
import re
import string
import subprocess
import sys

import polib
import pytest

from tools.diagnosis import known_failures
from tools.pages import messages, options_page

ROOMS = ("tools/config/", "tools/diagnosis/", "tools/doctor/", "tools/trainer/")
COMMANDS = [path for path in messages.files() if path.startswith("tools/") and path.count("/") == 1]
OURS = [path for path in messages.files() if path.startswith(ROOMS) or path in COMMANDS if path.endswith(".py")]
CHINESE = {entry.msgid: entry.msgstr for entry in polib.pofile(messages.CATALOGUE)}


def calls_of_tr(path):
    tree = ast.parse((messages.ROOT / path).read_text(encoding="utf-8"))
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    return [call for call in calls if getattr(call.func, "id", "") == "tr" and isinstance(call.args[0], ast.Constant)]


@pytest.mark.parametrize("path", OURS)
def test_a_call_has_the_values_of_its_message(path):
    for call in calls_of_tr(path):
        names = {keyword.arg for keyword in call.keywords}
        if names and None not in names:
            assert names == {name for _, name, _, _ in string.Formatter().parse(call.args[0].value) if name}, path


@pytest.mark.parametrize("path", OURS)
def test_every_message_of_tools_is_translated(path):
    assert [call.args[0].value for call in calls_of_tr(path) if not CHINESE[call.args[0].value]] == []


@pytest.mark.parametrize(("english", "chinese"), options_page.translations().items())
def test_an_option_is_explained_as_on_the_page(english, chinese):
    for message, translation in CHINESE.items():
        if message == english or message.startswith(english + "\n"):
            assert translation.partition("\n")[0] == chinese


def test_a_failure_of_our_trainer_is_known_in_both_languages():
    """A rank writes its messages in the user's language into its log."""
    entries, _ = known_failures.load({})

    def codes(message):
        line = "train.py: " + re.sub(r"\{\w+[^}]*\}", "*-1", message).replace("{{", "{").replace("}}", "}")
        return {entry.code for entry, _ in known_failures.by_lines(entries, [line])}

    found = {
        message: (codes(message), codes(CHINESE[message])) for path in OURS for message in map(text, calls_of_tr(path))
    }
    assert {message: both for message, both in found.items() if both[0] != both[1]} == {}
    assert any(english for english, _ in found.values())


def text(call):
    return call.args[0].value


DIGITS = "configs/mnist/lenet5_digits.yaml"


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
def test_the_trainer_refuses_in_chinese(arguments, said):
    environment = {**os.environ, "LAUNCH_LANG": "zh", "PYTHONIOENCODING": "utf-8"}
    for name in ("RANK_SIZE", "DATA_PATH", "MS_ROLE"):
        environment.pop(name, None)
    command = [sys.executable, "tools/train.py", "--config", *arguments]
    ended = subprocess.run(
        command, cwd=messages.ROOT, env=environment, capture_output=True, text=True, encoding="utf-8", check=False
    )
    assert said in ended.stdout + ended.stderr, ended
