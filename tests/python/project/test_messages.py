"""The Chinese messages: none is missing, and each has the values of the English one."""

import functools
import os
import pathlib
import re
import string
import subprocess

import polib
import pytest

from hccl_tools.common import language
from tools.pages import messages

# They write to the logs of ranks, where other programs look for the words; or bash may be the reason why they run.
SPOKEN_BY_RANKS = {"scripts/lib/rank_agent.sh", "scripts/lib/abandoned.sh"}
UNMARKED = re.compile(
    r"""(?:log::(?:say|note|later|die \S+)|cli::usage|REPLY\+?=|printf '%s\\n') ?(?:"((?:[^"\\]|\\.)*)"|'([^']*)')"""
)
WORDS = re.compile(r"(?<![$\w{\[/.-])[a-z]{2,}(?![\w:=(\[])")
HINT = "type: python -m tools.pages.messages"


@functools.cache
def catalogue():
    """Read when a test needs it: each worker imports this file."""
    return polib.pofile(messages.CATALOGUE)


@functools.cache
def collected():
    return messages.collected()


@functools.cache
def of_bash():
    return {message for message, paths in collected().items() if any(path.endswith(".sh") for path in paths)}


def test_the_catalogue_has_the_messages_of_the_code():
    assert {entry.msgid for entry in catalogue()} == set(collected()), HINT


def test_every_message_is_translated():
    assert [entry.msgid for entry in catalogue() if not entry.msgstr] == [], f"no translation in {messages.CATALOGUE}"


def test_the_compiled_catalogue_is_that_of_the_text():
    compiled = polib.mofile(messages.CATALOGUE.replace(".po", ".mo"))
    assert {entry.msgid: entry.msgstr for entry in compiled} == {e.msgid: e.msgstr for e in catalogue()}, HINT


def test_the_help_of_the_scripts_is_that_of_the_catalogue():
    wanted = messages.help_files({entry.msgid: entry.msgstr for entry in catalogue()})
    found = {str(path): path.read_text(encoding="utf-8") for path in pathlib.Path(messages.HELP).iterdir()}
    assert found == wanted, HINT


@pytest.mark.parametrize("path", [path for path in messages.files() if path.endswith(".sh")])
def test_no_message_of_the_scripts_is_left_out(path):
    """A text of three words or more for a function that prints it, or in REPLY, is marked for translation."""
    text = (pathlib.Path(messages.ROOT) / path).read_text(encoding="utf-8")
    left = [text for text in map("".join, UNMARKED.findall(text)) if len(WORDS.findall(text)) > 2]
    assert path in SPOKEN_BY_RANKS or left == []


def values_of_python(text):
    return sorted((name, spec, conversion) for _, name, spec, conversion in string.Formatter().parse(text) if name)


def values_of_bash(text):
    return sorted(re.findall(r"(?<!\\)\$(?:\w+|#|\{[^}]*\})", text))


def test_a_translation_has_the_values_of_the_message():
    values = {True: values_of_bash, False: values_of_python}
    wrong = [
        e.msgid for e in catalogue() if values[e.msgid in of_bash()](e.msgstr) != values[e.msgid in of_bash()](e.msgid)
    ]
    assert wrong == []


def test_a_translation_for_bash_runs_nothing():
    """bash expands a translation as it does the text."""
    texts = [entry.msgstr for entry in catalogue() if entry.msgid in of_bash()]
    left = [re.sub(r"(?<!\\)\$(\w+|#|\{[^}$`(]*\})", "", text) for text in texts]
    assert [text for text in left if re.search(r'(?<!\\)["$`]', text)] == []


@pytest.mark.parametrize(
    ("environment", "chinese"),
    [
        ({}, False),
        ({"LANG": "zh_CN.UTF-8"}, True),
        ({"LANG": "zh_CN.UTF-8", "LC_ALL": "C"}, False),
        ({"LANG": "en_US.UTF-8", "LC_MESSAGES": "zh_TW"}, True),
        ({"LANG": "C", "LANGUAGE": "zh"}, False),
        ({"LANG": "en_US.UTF-8", "LANGUAGE": "fr:zh_CN:en"}, True),
        ({"LANG": "zh_CN.UTF-8", "LANGUAGE": "en:zh"}, False),
        ({"LANG": "de_DE.UTF-8"}, False),
        ({"LANG": "C", "LAUNCH_LANG": "zh"}, True),
        ({"LANG": "zh_CN.UTF-8", "LAUNCH_LANG": "en"}, False),
        ({"LANG": "zh_CN.UTF-8", "LAUNCH_LANG": "x"}, True),
    ],
    ids=lambda value: " ".join(f"{k}={v}" for k, v in value.items()) if isinstance(value, dict) else None,
)
def test_python_and_bash_choose_the_same_language(environment, chinese, tmp_path):
    assert language.is_chinese(environment) is chinese
    script = tmp_path / "ask.sh"  # a file, because it may start again
    script.write_text(f"""
      LAUNCH_ROOT={messages.ROOT} LAUNCH_LIB=$LAUNCH_ROOT/scripts/lib
      for part in own_shell language language_probe; do source "$LAUNCH_LIB/$part.sh"; done
      echo "$LAUNCH_LANG $REPLY"
    """)
    environment = {**environment, "PATH": os.environ["PATH"], "LAUNCH_SHELL": "///"}
    told = subprocess.run(["bash", script], env=environment, capture_output=True, text=True, check=True).stdout.split()
    assert told == (["zh", "zh"] if chinese else ["en", "en"])


def test_values_are_put_in_their_places_and_not_read_again(monkeypatch):
    monkeypatch.setattr(language, "_catalogue", lambda: None)
    assert language.tr("{path}: no such folder", path="{path} %s {0}") == "{path} %s {0}: no such folder"
    assert language.tr("a {brace") == "a {brace"
